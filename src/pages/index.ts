/// <reference types="node" preserve="true" />

export { pages, type PagesExtension, type PagesOptions, type SignInLinkOptions } from './pages.ts'
export { sessionKeyFromFolder } from './session-key-file.ts'
