import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { SignJWT } from 'jose'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { automation, type AutomationExtension, type AutomationOptions } from '../../src/automation-server/index.ts'
import {
  type Access,
  type CommonServiceOptions,
  createObjectService,
  jwtAccess,
  type ObjectService,
  type AccessRight,
  type StorageBackend,
} from '../../src/index.ts'
import { pages, type PagesExtension, type PagesOptions } from '../../src/pages/index.ts'
import { SECRET_KEY, uploadObjects, withVersion } from '../automation-server/support.ts'

const TOKEN_KEY = new Uint8Array(32).fill(9)
const ORIGIN = 'http://stowage.test'
const TOKEN_LIFE_S = 3_600

/** Access by tokens that `tokenFor` makes. */
export const TOKEN_ACCESS: Access<unknown> = jwtAccess({
  keys: TOKEN_KEY,
  issuer: 'tests',
  audience: 'pages',
  algorithms: ['HS256'],
})

export function tokenFor(projects: Readonly<Record<string, AccessRight>>, subject = 'Ada'): Promise<string> {
  return new SignJWT({ stowage: { projects } })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer('tests')
    .setAudience('pages')
    .setSubject(subject)
    .setExpirationTime(Math.floor(Date.now() / 1_000) + TOKEN_LIFE_S)
    .sign(TOKEN_KEY)
}

export interface Paged {
  readonly backend: StorageBackend
  readonly service: ObjectService
  readonly extension: AutomationExtension
  readonly web: PagesExtension
}

export interface PagedOptions extends AutomationOptions {
  readonly backend?: StorageBackend
  readonly service?: Partial<CommonServiceOptions<unknown>>
  readonly pages?: Partial<PagesOptions>
}

/** A service with automation and pages over a backend in memory; it ends with the test. */
export function paged(
  t: TestContext,
  { backend = memoryBackend(), service: serviceOptions = {}, pages: pagesOptions = {}, ...options }: PagedOptions = {},
): Paged {
  const extension = automation({ secretKeys: [SECRET_KEY], ...options })
  const web = pages({ automation: extension, ...pagesOptions })
  const service = createObjectService({
    backend,
    access: TOKEN_ACCESS,
    ...serviceOptions,
    extensions: [extension, web],
  })
  t.after(() => service.close({ graceMs: 100 }))
  return { backend, service, extension, web }
}

export interface Shown {
  readonly status: number
  readonly headers: Headers
  readonly html: string
}

/**
 * What a browser does with pages: it keeps cookies, says where it comes from, sends forms, and follows no redirects
 * here.
 */
export class Visitor {
  readonly #service: Pick<ObjectService, 'fetch'>
  readonly #cookies = new Map<string, string>()

  constructor(service: Pick<ObjectService, 'fetch'>) {
    this.#service = service
  }

  get cookie(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Shown> {
    return this.#ask(path, {
      headers: {
        'sec-fetch-site': 'same-origin',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
        ...headers,
      },
    })
  }

  post(
    path: string,
    form: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = { 'sec-fetch-site': 'same-origin', origin: ORIGIN },
  ): Promise<Shown> {
    return this.#ask(path, {
      method: 'POST',
      body: new URLSearchParams(form).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
  }

  async signIn(token: string, home = '/web'): Promise<void> {
    const { status, headers } = await this.post(`${home}/sign-in`, { token })
    assert.equal(status, 303)
    assert.equal(headers.get('location'), home)
  }

  async #ask(path: string, init: RequestInit): Promise<Shown> {
    const headers = new Headers({
      host: new URL(ORIGIN).host,
      accept: 'text/html,application/xhtml+xml',
      ...(init.headers as Record<string, string>),
    })
    if (this.#cookies.size > 0) headers.set('cookie', this.cookie)
    const response = await this.#service.fetch(new Request(`${ORIGIN}${path}`, { ...init, headers }))
    for (const one of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(one) ?? []
      if (/max-age=0/i.test(one)) this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    return { status: response.status, headers: response.headers, html: await response.text() }
  }
}

export async function signedIn(
  service: Pick<ObjectService, 'fetch'>,
  projects: Readonly<Record<string, AccessRight>> = { p: 'write' },
): Promise<Visitor> {
  const visitor = new Visitor(service)
  await visitor.signIn(await tokenFor(projects))
  return visitor
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
}

/** What of a page is read: no tags, and single spaces. */
export function textOf(html: string): string {
  return html
    .replaceAll(/<title>.*?<\/title>/g, ' ')
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:lt|gt|quot|#39|amp);/g, (entity) => ENTITIES[entity])
    .replaceAll(/\s+/g, ' ')
    .trim()
}

export { uploadObjects, withVersion }
