import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { CredentialStore } from './credential-store.ts'
import { seal, unseal } from './sealed.ts'

/*
 * The keys of one purpose:
 *
 *   <name>       the first key: 64 hex digits
 *   <name>.2     the next one, as JSON, with the moment at which all older keys end
 *   <name>.3     ...
 *
 * The key with the highest number is the current one. Each is created once and never changed, and its creation is the rotation, so that a crash
 * leaves either the old key or the new one, and of two rotations at a time one fails.
 */

const KEY_BYTES = 32
const KEY_TEXT = /^[0-9a-f]{64}$/
const ID_HEX_DIGITS = 16
/** Every key that is held may have to be tried. */
const KEYS_MAX = 16

/** The keys of one purpose. */
export interface KeyRing {
  readonly credentials: CredentialStore
  /** Of the first key, such as `secrets-key`. */
  readonly name: string
  /** What to do about a damaged key, as a sentence without its full stop. */
  readonly ifDamaged: string
}

/** A key that a server made and holds. */
export interface HeldKey {
  /** Names the key and does not reveal it: the start of its SHA-256 in hex. */
  readonly id: string
  readonly key: Uint8Array
  /** 1 for the first one. */
  readonly number: number
  /** ISO 8601; the first key does not say. */
  readonly createdAt?: string
  /** ISO 8601; the current key has no end. */
  readonly validUntil?: string
}

interface NextKey {
  readonly key: string
  readonly createdAt: string
  readonly previousValidUntil: string
}

/** All keys, the current one first. The first key is made when there is none. Throws `corrupt_data`. */
export async function readKeys(ring: KeyRing): Promise<readonly HeldKey[]> {
  const held = await heldKeys(ring)
  if (held.length > 0) return held
  await ring.credentials.create('keys', nameOf(ring, 1), seal(randomBytes(KEY_BYTES).toString('hex')))
  return heldKeys(ring)
}

/** All keys, the current one first; empty before the first is made. Throws `corrupt_data`. */
export async function heldKeys(ring: KeyRing): Promise<readonly HeldKey[]> {
  const keys: HeldKey[] = []
  let olderValidUntil: string | undefined
  for (const number of (await numbersOf(ring)).toReversed()) {
    const text = await ring.credentials.read('keys', nameOf(ring, number))
    if (text === undefined) continue
    const { key, createdAt, previousValidUntil } = parsed(ring, number, text)
    keys.push({
      id: createHash('sha256').update(key).digest('hex').slice(0, ID_HEX_DIGITS),
      key,
      number,
      ...(createdAt === undefined ? {} : { createdAt }),
      ...(olderValidUntil === undefined ? {} : { validUntil: olderValidUntil }),
    })
    olderValidUntil = earlier(olderValidUntil, previousValidUntil)
  }
  return keys
}

export function isValidAt({ validUntil }: HeldKey, nowMs: number): boolean {
  return validUntil === undefined || nowMs < Date.parse(validUntil)
}

/**
 * Makes a new current key. All older ones end at `previousValidUntil`, or when they would have ended anyway. Resolves
 * to all keys, the new one first. Throws `conflict` when another process made one at the same time, or when too many
 * keys are held, and `invalid_request` for the folder of another user.
 */
export async function rotateKey(
  ring: KeyRing,
  previousValidUntil: string,
  clock: Clock = Date,
): Promise<readonly HeldKey[]> {
  await ring.credentials.checkOwner()
  const keys = await readKeys(ring)
  if (keys.length >= KEYS_MAX)
    throw new StowageError(
      'conflict',
      `${ring.name} has ${keys.length} keys that may still be needed, the most that are kept; try again when the oldest has ended ("stowage key list")`,
    )
  const next: NextKey = {
    key: randomBytes(KEY_BYTES).toString('hex'),
    createdAt: new Date(clock.now()).toISOString(),
    previousValidUntil,
  }
  if (!(await ring.credentials.create('keys', nameOf(ring, keys[0].number + 1), seal(JSON.stringify(next)))))
    throw new StowageError('conflict', `another process rotated ${ring.name} at the same time; nothing was changed`)
  return heldKeys(ring)
}

/** Removes the keys that have ended, among those that `isFree` lets go. The current key stays. */
export async function removeEndedKeys(
  ring: KeyRing,
  isFree: (key: HeldKey) => boolean = () => true,
  clock: Clock = Date,
): Promise<void> {
  for (const key of await heldKeys(ring))
    if (!isValidAt(key, clock.now()) && isFree(key)) await ring.credentials.remove('keys', nameOf(ring, key.number))
}

/** The faults of the keys of a ring, one message each. Nothing is created or changed. */
export async function* damagedKeys(ring: KeyRing): AsyncGenerator<string> {
  for (const number of await numbersOf(ring)) {
    const text = await ring.credentials.read('keys', nameOf(ring, number))
    try {
      if (text !== undefined) parsed(ring, number, text)
    } catch (error) {
      yield (error as Error).message
    }
  }
}

function parsed(
  ring: KeyRing,
  number: number,
  text: string,
): { readonly key: Uint8Array; readonly createdAt?: string; readonly previousValidUntil?: string } {
  const line = unseal(text)
  if (number === 1 && line !== undefined && KEY_TEXT.test(line)) return { key: keyOf(line) }
  if (number > 1 && line !== undefined) {
    // The checksum holds, so it is what `rotateKey` wrote.
    const { key, createdAt, previousValidUntil } = JSON.parse(line) as NextKey
    return { key: keyOf(key), createdAt, previousValidUntil }
  }
  const shape = number === 1 ? 'a line of 64 hex digits' : 'a line of JSON'
  throw new StowageError(
    'corrupt_data',
    `${ring.credentials.describe('keys', nameOf(ring, number))} is not a key; it must be ${shape} and one of their CRC-32. ${ring.ifDamaged}`,
  )
}

function keyOf(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'))
}

function earlier(one: string | undefined, other: string | undefined): string | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return Date.parse(one) < Date.parse(other) ? one : other
}

/** In rising order. */
async function numbersOf(ring: KeyRing): Promise<number[]> {
  const names = await ring.credentials.names('keys')
  return names.flatMap((name) => numberOf(ring, name) ?? []).sort((a, b) => a - b)
}

function numberOf({ name: first }: KeyRing, name: string): number | undefined {
  if (name === first) return 1
  const digits = name.startsWith(`${first}.`) ? name.slice(first.length + 1) : ''
  return /^[1-9][0-9]{0,8}$/.test(digits) && digits !== '1' ? Number(digits) : undefined
}

function nameOf({ name: first }: KeyRing, number: number): string {
  return number === 1 ? first : `${first}.${number}`
}
