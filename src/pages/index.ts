/// <reference types="node" preserve="true" />

export { pages, type PagesExtension, type PagesOptions, type SignInLinkOptions } from './pages.ts'
export { sessionKeysFromFolder } from './session-keys.ts'
