import { expectAssignable, expectError, expectType } from 'tsd'
import { createObjectService, folderCredentials, openAccess, type ServiceExtension } from 'stowage'
import { automation, type AutomationExtension } from 'stowage/automation/server'
import { memoryBackend } from 'stowage/memory'
import { pages, type PagesExtension, type PagesOptions, storedSessionKeys, type SignInLinkOptions } from 'stowage/pages'

const auto = automation()
const web = pages({ automation: auto })

expectType<PagesExtension<unknown>>(web)
expectAssignable<ServiceExtension>(web)
createObjectService({ backend: memoryBackend(), access: openAccess(), extensions: [auto, web] })

expectType<Promise<string>>(web.signInLink({ token: 'a token' }))
expectError(web.signInLink())
expectError(web.signInLink({ token: 1 }))
expectAssignable<SignInLinkOptions>({ token: 'a token' })

expectError(pages())
expectError(pages({}))
expectError(pages({ automation: web }))
expectError(pages({ automation: auto, sessionKeys: 'a text' }))
expectAssignable<PagesOptions>({
  automation: auto,
  sessionKeys: [new Uint8Array(32)],
  sessionMs: 60_000,
  origin: 'https://models.example',
})
expectType<Promise<readonly Uint8Array[]>>(storedSessionKeys(folderCredentials('data')))
expectAssignable<PagesOptions>({ automation: auto, sessionKeys: () => storedSessionKeys(folderCredentials('data')) })

// What the host knows of a request is the same for both.
interface Host {
  readonly account: string
}
declare const hosted: AutomationExtension<Host>
expectType<PagesExtension<Host>>(pages({ automation: hosted }))
expectError<PagesExtension<string>>(pages({ automation: hosted }))
