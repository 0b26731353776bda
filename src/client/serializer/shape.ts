/** The member names of graphs. */
export interface GraphConventions {
  /** The member that names an object's type; references are written with it. `speckle_type` by default. */
  readonly typeField?: string
  /** The type of the objects that pieces of long arrays become. `Speckle.Core.Models.DataChunk` by default. */
  readonly chunkType?: string
}

/** A reference in the place of an object. */
export type Reference = Record<string, string> & { referencedId: string }

export const TYPE_FIELD = 'speckle_type'
export const CHUNK_TYPE = 'Speckle.Core.Models.DataChunk'

const REFERENCE_TYPE = 'reference'
const CHUNK_ITEMS = 1_000
const CHUNKED_NAME = /^@\((\d*)\)/

export function newReference(typeField: string, referencedId: string): Reference {
  return { [typeField]: REFERENCE_TYPE, referencedId }
}

/** `@name` is detached. */
export function isDetachedName(name: string): boolean {
  return name.length > 1 && name.startsWith('@')
}

/** The items of one piece where `@(1000)name` asks for pieces; 1,000 for `@()name`; `undefined` for other names. */
export function chunkItemsOf(name: string): number | undefined {
  const digits = CHUNKED_NAME.exec(name)?.[1]
  if (digits === undefined) return undefined
  return digits === '' ? CHUNK_ITEMS : Number(digits)
}

/**
 * The items of one chunk, if an array had chunks of these lengths; a single one does not tell how long it might have
 * been.
 */
export function itemsOfPieces(lengths: readonly number[]): number {
  const longest = lengths.reduce((max, length) => Math.max(max, length), 0)
  return lengths.length > 1 && longest > 0 ? longest : Math.max(longest, CHUNK_ITEMS)
}

/** Sets a member whatever its name is: by assignment, `__proto__` would not become one. */
export function setMember(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true })
  else target[name] = value
}
