import { randomBytes } from 'node:crypto'
import { parseCookie, stringifySetCookie } from 'cookie'
import { EncryptJWT, errors, jwtDecrypt } from 'jose'
import type { Clock } from '../../environment.ts'
import { StowageError } from '../../errors.ts'

export type SessionKey = Uint8Array | (() => Promise<Uint8Array>)

export interface SessionOptions {
  /** 32 bytes. A new one with every start by default, so that a restart signs everybody out. */
  readonly key?: SessionKey | undefined
  readonly sessionMs: number
  readonly clock: Clock
}

const KEY_BYTES = 32
const PURPOSE = 'stowage-session'
/** Browsers keep cookies of 4,096 bytes; sealing adds a third and some. */
const TOKEN_BYTES_MAX = 2_800
const COOKIE_HEADER_BYTES_MAX = 65_536

/** Prefixed names are kept by browsers only when they were set by https, the first one for this very host alone. */
const HOST_NAME = '__Host-stowage-session'
const SECURE_NAME = '__Secure-stowage-session'
const PLAIN_NAME = 'stowage-session'
const NAMES: readonly string[] = [HOST_NAME, SECURE_NAME, PLAIN_NAME]

/** Keeps a person's token in a cookie, sealed (JWE, RFC 7516, with A256GCM), so that nobody but this service reads it, the browser included. */
export class Sessions {
  #key: Uint8Array
  readonly #source: SessionKey
  readonly #sessionMs: number
  readonly #clock: Clock

  /** Throws `TypeError` for a key of the wrong length. */
  constructor({ key = randomBytes(KEY_BYTES), sessionMs, clock }: SessionOptions) {
    this.#source = key
    this.#key = checkedKey(typeof key === 'function' ? randomBytes(KEY_BYTES) : key)
    this.#sessionMs = sessionMs
    this.#clock = clock
  }

  /** Nobody signs in before. Throws as the constructor does. */
  async open(): Promise<void> {
    if (typeof this.#source === 'function') this.#key = checkedKey(await this.#source())
  }

  /** The value of `Set-Cookie` that signs in. Throws `invalid_request` for a token that no cookie can hold. */
  async begin(token: string, place: CookiePlace): Promise<string> {
    if (token.length > TOKEN_BYTES_MAX)
      throw new StowageError(
        'invalid_request',
        `the token has ${token.length} bytes; to sign in with it, it must have ${TOKEN_BYTES_MAX} at most`,
      )
    const expiresMs = this.#clock.now() + this.#sessionMs
    const sealed = await new EncryptJWT({ token })
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
      .setAudience(PURPOSE)
      .setExpirationTime(Math.floor(expiresMs / 1_000))
      .encrypt(this.#key)
    return setCookie(cookieName(place), sealed, place, Math.floor(this.#sessionMs / 1_000))
  }

  /** The token of whoever is signed in; `undefined` for nobody. */
  async tokenOf(headers: Pick<Headers, 'get'>): Promise<string | undefined> {
    const sealed = sessionCookie(headers)
    if (sealed === undefined) return undefined
    try {
      const { payload } = await jwtDecrypt<{ readonly token: string }>(sealed, this.#key, {
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

function checkedKey(key: Uint8Array): Uint8Array {
  if (key.length === KEY_BYTES) return Uint8Array.from(key)
  throw new TypeError(`sessionKey has ${key.length} bytes; it must have ${KEY_BYTES}`)
}

/** Where a cookie holds. */
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

/** A path with a semicolon cannot stand in a cookie: then it holds for the host. */
function cookiePath(base: string): string {
  return base === '' || !/^[\x21-\x3a\x3c-\x7e]+$/.test(base) ? '/' : base
}

function setCookie(name: string, value: string, { base, secure }: CookiePlace, maxAge: number): string {
  return stringifySetCookie({ name, value, path: cookiePath(base), httpOnly: true, sameSite: 'strict', secure, maxAge })
}
