import { createHash } from 'node:crypto'

/**
 * Keys of automation's records: the kind `x`, then NUL-ended UTF-8 parts as in the object store. Records of a project
 * lie below its id and its generation, which rises when the project is removed. Records that are found without knowing
 * the project lie below an empty id, which no project has.
 */
export type ProjectTable =
  | 'model'
  | 'version'
  | 'automation'
  | 'run'
  | 'inputs'
  | 'of'
  | 'waiting'
  | 'annotation'
  | 'log'
  | 'final'
  | 'artifact'
  | 'once'
  | 'mirror'
export type GlobalTable = 'head' | 'cause' | 'active' | 'trigger' | 'garbage' | 'key' | 'deleted' | 'orphan'

export interface Scope {
  readonly projectId: string
  readonly generation: number
}

export interface KeyBounds {
  readonly gte: Uint8Array
  readonly lt: Uint8Array
}

const KIND = 'x'
const GENERATION_DIGITS = 8
const encoder = new TextEncoder()

export function globalKey(table: GlobalTable, ...parts: readonly string[]): Uint8Array {
  return encoder.encode(joined([KIND, '', table, ...parts]))
}

export function projectKey(
  { projectId, generation }: Scope,
  table: ProjectTable,
  ...parts: readonly string[]
): Uint8Array {
  return encoder.encode(joined([KIND, projectId, generationText(generation), table, ...parts]))
}

/** Everything of a generation of a project. */
export function generationBounds({ projectId, generation }: Scope): KeyBounds {
  return boundsOf(encoder.encode(joined([KIND, projectId, generationText(generation)])))
}

/** Every record of automation. */
export function allBounds(): KeyBounds {
  return boundsOf(encoder.encode(joined([KIND])))
}

/** All keys that begin with the parts of `prefix`, itself not included. */
export function boundsOf(prefix: Uint8Array): KeyBounds {
  const lt = Uint8Array.from(prefix)
  lt[lt.length - 1] = 1
  return { gte: prefix, lt }
}

/** The parts of a key after its kind. */
export function partsOf(key: Uint8Array): string[] {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString('utf8').split('\0').slice(1, -1)
}

export function generationText(generation: number): string {
  return generation.toString(16).padStart(GENERATION_DIGITS, '0')
}

export function parseGeneration(text: string): number {
  return Number.parseInt(text, 16)
}

export const BLOB_ROOT = 'x/'

/** Names of blobs contain the generation, so that the leftovers of a removed project can be told by name. */
export function blobName(scope: Scope, kind: 'artifact' | 'annotation', id: string): string {
  return `${blobFolder(scope.projectId)}${generationText(scope.generation)}-${kind}-${id}`
}

export function blobFolder(projectId: string): string {
  return `${BLOB_ROOT}${createHash('sha256').update(projectId, 'utf8').digest('hex')}/`
}

function joined(parts: readonly string[]): string {
  return `${parts.join('\0')}\0`
}
