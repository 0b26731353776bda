import { hash } from 'node:crypto'
import { HEX_ID_BYTES, PACKED_ID_BYTES, packHexId, unpackHexId } from '../../object/hex-id.ts'

/**
 * Keys of records: UTF-8 parts, each ended by 0x00: the kind first, then the project, then its generation. Ids contain
 * no 0x00, so all keys are distinct, and the longest (a plan) has 700 bytes. Objects have very many keys: an id of 32
 * lower-case hex digits is 0x00 and the 16 bytes that they stand for, and no other id begins with 0x00. Numbers are
 * fixed-width hex, so that bytewise order is their order. A project's generation rises when it is removed, so the
 * leftovers of the removed one can be swept later while a new one fills.
 */
const encoder = new TextEncoder()
const KIND = {
  head: 'h',
  object: 'o',
  pack: 'k',
  retiredContent: 'b',
  pending: 'w',
  plan: 'p',
  garbage: 'g',
  epoch: 'e',
  totals: 't',
  pin: 'r',
  condemnedBlob: 'c',
  merge: 'm',
  collection: 'f',
  lease: 'l',
  exportPoint: 's',
} as const
const GENERATION_DIGITS = 8
const SEQUENCE_DIGITS = 12

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

function prefix(kind: keyof typeof KIND, projectId: string, generation: number): string {
  return `${KIND[kind]}\0${projectId}\0${hex(generation, GENERATION_DIGITS)}\0`
}

export function headKey(projectId: string): Uint8Array {
  return encoder.encode(`${KIND.head}\0${projectId}\0`)
}

/** The one record that counts the store's time. */
export function epochKey(): Uint8Array {
  return encoder.encode(`${KIND.epoch}\0`)
}

/** The records of a lease: one names its holder, the other one counts. */
export function leaseKey(name: string, part: 'holder' | 'beat'): Uint8Array {
  return encoder.encode(`${KIND.lease}\0${name}\0${part}\0`)
}

export function packKey(projectId: string, generation: number, sequence: number): Uint8Array {
  return encoder.encode(`${prefix('pack', projectId, generation)}${hex(sequence, SEQUENCE_DIGITS)}\0`)
}

/** The content of a retired pack that lay inside its record before. */
export function retiredContentKey(projectId: string, generation: number, sequence: number): Uint8Array {
  return encoder.encode(`${prefix('retiredContent', projectId, generation)}${hex(sequence, SEQUENCE_DIGITS)}\0`)
}

/** Marks a pack that is committed but not yet applied, so that recovery finds it without reading every pack. */
export function pendingKey(projectId: string, generation: number, sequence: number): Uint8Array {
  return encoder.encode(`${prefix('pending', projectId, generation)}${hex(sequence, SEQUENCE_DIGITS)}\0`)
}

export function pinKey(projectId: string, generation: number, pinId: string): Uint8Array {
  return encoder.encode(`${prefix('pin', projectId, generation)}${pinId}\0`)
}

export function totalsKey(projectId: string, generation: number): Uint8Array {
  return encoder.encode(prefix('totals', projectId, generation))
}

export function garbageKey(projectId: string, generation: number): Uint8Array {
  return encoder.encode(prefix('garbage', projectId, generation))
}

/**
 * Marks a blob that is to go. Names of blobs are random, so the mark needs no generation: what nobody committed belongs
 * to none.
 */
export function condemnedBlobKey(projectId: string, blobName: string): Uint8Array {
  return encoder.encode(`${KIND.condemnedBlob}\0${projectId}\0${blobName.slice(blobName.indexOf('/') + 1)}\0`)
}

/** The one record of the merge that is under way in a project. */
export function mergeKey(projectId: string, generation: number): Uint8Array {
  return encoder.encode(prefix('merge', projectId, generation))
}

/** A moment at which an export began; points have the numbers of a project's exports. */
export function exportPointKey(projectId: string, generation: number, number: number): Uint8Array {
  return encoder.encode(`${prefix('exportPoint', projectId, generation)}${hex(number, SEQUENCE_DIGITS)}\0`)
}

/** Names the collection that may change a project: the one that began last. */
export function collectionKey(projectId: string, generation: number): Uint8Array {
  return encoder.encode(prefix('collection', projectId, generation))
}

/** `variant` is empty for a root's own closure; otherwise it names the subtracted closures. */
export function planKey(projectId: string, generation: number, rootId: string, variant: string): Uint8Array {
  return encoder.encode(`${prefix('plan', projectId, generation)}${rootId}\0${variant}\0`)
}

/**
 * Makes the keys of many objects of one project without building a string for each. They are slices of Node's pool: V8
 * keeps other short arrays within its heap, and copies each elsewhere when native code first reads it.
 */
export function objectKeyMaker(projectId: string, generation: number): (id: Uint8Array) => Uint8Array {
  const head = encoder.encode(prefix('object', projectId, generation))
  const packedKey = Buffer.alloc(head.length + 1 + PACKED_ID_BYTES)
  packedKey.set(head)
  return (id) => {
    if (id.length === HEX_ID_BYTES && packHexId(id, 0, packedKey, head.length + 1)) return Buffer.from(packedKey)
    const key = Buffer.allocUnsafe(head.length + id.length + 1)
    key.set(head)
    key.set(id, head.length)
    key[key.length - 1] = 0
    return key
  }
}

/** What the key of an object names. The id is empty if the key is damaged. */
export function objectKeyParts(key: Uint8Array): { projectId: string; generation: number; id: string } {
  const [projectId, generationHex, text] = keyParts(key)
  const generation = parseHex(generationHex)
  const idStart = encoder.encode(prefix('object', projectId, generation)).length
  if (key[idStart] !== 0) return { projectId, generation, id: text ?? '' }
  const digits = Buffer.alloc(HEX_ID_BYTES)
  const isWhole = key.length === idStart + 1 + PACKED_ID_BYTES
  if (isWhole) unpackHexId(key, idStart + 1, digits, 0)
  return { projectId, generation, id: isWhole ? digits.toString('latin1') : '' }
}

/** Bounds of every key of one kind, in the whole store, in one project, or in one generation of it. */
export function keyBounds(
  kind: keyof typeof KIND,
  projectId?: string,
  generation?: number,
): { gte: Uint8Array; lt: Uint8Array } {
  const start =
    projectId === undefined
      ? `${KIND[kind]}\0`
      : generation === undefined
        ? `${KIND[kind]}\0${projectId}\0`
        : prefix(kind, projectId, generation)
  const gte = encoder.encode(start)
  const lt = gte.slice()
  lt[lt.length - 1] = 1
  return { gte, lt }
}

/** The parts of a key after its kind, as text. */
export function keyParts(key: Uint8Array): string[] {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8').split('\0').slice(1, -1)
}

export function parseHex(part: string): number {
  return Number.parseInt(part, 16)
}

/** Whether a blob belongs to an extension of the service: names under `x/` are not the object store's. */
export function isOfExtension(blobName: string): boolean {
  return blobName.startsWith('x/')
}

/** The first segment of a project's blob names: ids never become paths. */
export function projectFolder(projectId: string): string {
  return hash('sha256', projectId, 'hex')
}

export function packBlobName(projectId: string, packId: string): string {
  return `${projectFolder(projectId)}/${packId}`
}

export function planBlobName(projectId: string, planId: string): string {
  return `${projectFolder(projectId)}/plan-${planId}`
}

export function tombstoneBlobName(projectId: string, generation: number): string {
  return `${projectFolder(projectId)}/tombstone-${hex(generation, GENERATION_DIGITS)}`
}
