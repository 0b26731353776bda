/// <reference types="node" preserve="true" />

/**
 * Web pages of automation: models, forms, runs and their results.
 *
 * @module stowage/pages
 *
 * @example
 * import { createObjectService, jwtAccess } from 'stowage'
 * import { automation } from 'stowage/automation/server'
 * import { memoryBackend } from 'stowage/memory'
 * import { pages } from 'stowage/pages'
 *
 * const access = jwtAccess({
 *   keys: new TextEncoder().encode('a secret of at least 32 bytes, not this one'),
 *   issuer: 'https://id.example',
 *   audience: 'models',
 *   algorithms: ['HS256'],
 * })
 * const automations = automation()
 * const web = pages({ automation: automations })
 * const service = createObjectService({ backend: memoryBackend(), access, extensions: [automations, web] })
 * await service.ready()
 * await service.close()
 */

export { pages, type PagesExtension, type PagesOptions, type SignInLinkOptions } from './pages.ts'
export type { SignInCode, SignInCodeStore } from './server/sign-in-codes.ts'
export { storedSessionKeys } from './session-keys.ts'
export { storedSignInCodes } from './stored-codes.ts'
