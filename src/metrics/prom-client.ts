import { createRequire } from 'node:module'
import type * as PromClient from 'prom-client'

/**
 * The package, which the host installs: Stowage does not include it. Throws an error with instructions if it is
 * missing.
 */
export function loadPromClient(): typeof PromClient {
  try {
    return createRequire(import.meta.url)('prom-client') as typeof PromClient
  } catch (cause) {
    throw new Error('metrics need the package prom-client, which is not installed: npm install prom-client', { cause })
  }
}
