import { randomBytes } from 'node:crypto'
import { parseCookie, stringifySetCookie } from 'cookie'
import { EncryptJWT, errors, jwtDecrypt } from 'jose'
import { Refreshed } from '../../async/refreshed.ts'
import type { Clock } from '../../environment.ts'
import { StowageError } from '../../errors.ts'

export type SessionKeys = readonly Uint8Array[] | (() => Promise<readonly Uint8Array[]>)

export interface SessionOptions {
  /**
   * 32 bytes each: the first one seals, all of them open. A new one with every start by default, so that a restart
   * signs everybody out.
   */
  readonly keys?: SessionKeys | undefined
  readonly sessionMs: number
  readonly clock: Clock
}

const KEY_BYTES = 32
/** A key that was added or has ended counts within a second. */
const KEYS_FRESH_MS = 500
const PURPOSE = 'stowage-session'
/** Browsers keep cookies of 4,096 bytes; sealing adds a third and some. */
const TOKEN_BYTES_MAX = 2_800
const COOKIE_HEADER_BYTES_MAX = 65_536

/** Prefixed names are kept by browsers only when they were set by https, the first one for this very host alone. */
const HOST_NAME = '__Host-stowage-session'
const SECURE_NAME = '__Secure-stowage-session'
const PLAIN_NAME = 'stowage-session'
const NAMES: readonly string[] = [HOST_NAME, SECURE_NAME, PLAIN_NAME]

/**
 * Keeps a person's token in a cookie, sealed (JWE, RFC 7516, with A256GCM), so that only this service can read it, not
 * even the browser.
 */
export class Sessions {
  readonly #keys: Refreshed<readonly Uint8Array[]>
  readonly #sessionMs: number
  readonly #clock: Clock

  /** Throws `TypeError` for keys of the wrong length, or none. */
  constructor({ keys = [randomBytes(KEY_BYTES)], sessionMs, clock }: SessionOptions) {
    if (typeof keys !== 'function') checkedKeys(keys)
    this.#keys = new Refreshed(
      typeof keys === 'function' ? async () => checkedKeys(await keys()) : () => Promise.resolve(keys),
      KEYS_FRESH_MS,
    )
    this.#sessionMs = sessionMs
    this.#clock = clock
  }

  /** Nobody signs in before. Throws as the constructor does. */
  async open(): Promise<void> {
    await this.#keys.get()
  }

  /** The value of `Set-Cookie` that signs in. Throws `invalid_request` for a token that no cookie can hold. */
  async begin(token: string, place: CookiePlace): Promise<string> {
    if (token.length > TOKEN_BYTES_MAX)
      throw new StowageError(
        'invalid_request',
        `the token has ${token.length} bytes; the limit for signing in is ${TOKEN_BYTES_MAX}`,
      )
    const expiresMs = this.#clock.now() + this.#sessionMs
    const sealed = await new EncryptJWT({ token })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .setAudience(PURPOSE)
      .setExpirationTime(Math.floor(expiresMs / 1_000))
      .encrypt((await this.#keys.get())[0])
    return setCookie(cookieName(place), sealed, place, Math.floor(this.#sessionMs / 1_000))
  }

  /** The token of the signed-in person; `undefined` if nobody is signed in. */
  async tokenOf(headers: Pick<Headers, 'get'>): Promise<string | undefined> {
    const sealed = sessionCookie(headers)
    if (sealed === undefined) return undefined
    for (const key of await this.#keys.get()) {
      const token = await this.#opened(sealed, key)
      if (token !== undefined) return token
    }
    return undefined
  }

  async #opened(sealed: string, key: Uint8Array): Promise<string | undefined> {
    try {
      const { payload } = await jwtDecrypt<{ readonly token: string }>(sealed, key, {
        audience: PURPOSE,
        requiredClaims: ['exp'],
        currentDate: new Date(this.#clock.now()),
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      })
      return payload.token
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined
      throw error
    }
  }
}

function checkedKeys(keys: readonly Uint8Array[]): readonly Uint8Array[] {
  if (keys.length === 0) throw new TypeError('sessionKeys is empty; it must hold at least one key')
  for (const key of keys)
    if (key.length !== KEY_BYTES)
      throw new TypeError(`a key of sessionKeys has ${key.length} bytes; it must have ${KEY_BYTES}`)
  return keys
}

/** The scope of a cookie. */
export interface CookiePlace {
  /** `''` for all of the host. */
  readonly base: string
  readonly secure: boolean
}

/** The values of `Set-Cookie` that sign out. */
export function endSession({ base }: Pick<CookiePlace, 'base'>, headers: Pick<Headers, 'get'>): string | undefined {
  const cookies = cookiesOf(headers)
  const name = NAMES.find((one) => cookies[one] !== undefined)
  return name === undefined ? undefined : setCookie(name, '', { base, secure: name !== PLAIN_NAME }, 0)
}

export function hasSession(headers: Pick<Headers, 'get'>): boolean {
  return sessionCookie(headers) !== undefined
}

function sessionCookie(headers: Pick<Headers, 'get'>): string | undefined {
  const cookies = cookiesOf(headers)
  return NAMES.map((name) => cookies[name]).find((value) => value !== undefined)
}

function cookiesOf(headers: Pick<Headers, 'get'>): Readonly<Record<string, string | undefined>> {
  const header = headers.get('cookie')
  return header === null || header.length > COOKIE_HEADER_BYTES_MAX ? {} : parseCookie(header)
}

function cookieName(place: CookiePlace): string {
  if (!place.secure) return PLAIN_NAME
  return cookiePath(place.base) === '/' ? HOST_NAME : SECURE_NAME
}

/** A path with a semicolon cannot be in a cookie: then the cookie is valid for the host. */
function cookiePath(base: string): string {
  return base === '' || !/^[\x21-\x3a\x3c-\x7e]+$/.test(base) ? '/' : base
}

function setCookie(name: string, value: string, { base, secure }: CookiePlace, maxAge: number): string {
  return stringifySetCookie({ name, value, path: cookiePath(base), httpOnly: true, sameSite: 'strict', secure, maxAge })
}
