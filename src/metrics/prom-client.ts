import { createRequire } from 'node:module'
import type * as PromClient from 'prom-client'

/** The package, which is the host's: Stowage does not bring it. Throws an error that says how to get it. */
export function loadPromClient(): typeof PromClient {
  try {
    return createRequire(import.meta.url)('prom-client') as typeof PromClient
  } catch (cause) {
    throw new Error('metrics need the package prom-client, which is not installed: npm install prom-client', { cause })
  }
}
