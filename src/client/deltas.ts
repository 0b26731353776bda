import { applyDelta, DeltaFault, parseDelta } from '../delta/delta.ts'
import { DeltaEncoder } from '../delta/encode.ts'
import { missingError, listTexts } from './list.ts'
import type { Remote } from './remote.ts'
import type { ObjectText } from './types.ts'

/** Where texts of objects can be read that the client has already. */
export interface ObjectTexts {
  /** The texts in the order of `ids`, `undefined` for what is not there. */
  getMany(ids: readonly string[]): Promise<readonly (string | undefined)[]>
}

/** Bases that are read together. */
const BASES_AT_ONCE = 64
/** A delta that leads to more is not undone; its object is asked for instead. */
const TEXT_BYTES_MAX = 67_108_864
const SLICE_BYTES = 262_144
const SLICE_MS = 20

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Whether what came for an object is no text but a delta. */
function isDelta({ json }: ObjectText): boolean {
  return json.startsWith('[')
}

/** The objects with their texts, in their order. One whose base is not there, or is another than the server thinks, is asked for by its id. */
export async function undoDeltas(batch: readonly ObjectText[], bases: ObjectTexts, remote: Remote, signal: AbortSignal | undefined): Promise<readonly ObjectText[]> {
  if (!batch.some(isDelta)) return batch
  const texts = new Map<string, string>()
  const deltas = batch.filter(isDelta)
  for (let at = 0; at < deltas.length; at += BASES_AT_ONCE) await undoSome(deltas.slice(at, at + BASES_AT_ONCE), bases, texts)
  const lacking = deltas.map(({ id }) => id).filter((id) => !texts.has(id))
  if (lacking.length > 0) {
    for await (const found of listTexts(remote, lacking, { signal })) for (const { id, json } of found) texts.set(id, json)
  }
  const missing = lacking.filter((id) => !texts.has(id))
  if (missing.length > 0) throw missingError(missing)
  return batch.map((object) => (isDelta(object) ? { id: object.id, json: texts.get(object.id) as string } : object))
}

async function undoSome(deltas: readonly ObjectText[], bases: ObjectTexts, texts: Map<string, string>): Promise<void> {
  const parsed = deltas.flatMap(({ id, json }) => {
    const delta = unlessFaulty(() => parseDelta(json))
    return delta === undefined ? [] : [{ id, delta }]
  })
  const found = await bases.getMany(parsed.map(({ delta }) => delta.baseId))
  for (const [at, { id, delta }] of parsed.entries()) {
    const base = found[at]
    const text = base === undefined ? undefined : unlessFaulty(() => decoder.decode(applyDelta(delta, encoder.encode(base), TEXT_BYTES_MAX)))
    if (text !== undefined) texts.set(id, text)
  }
}

function unlessFaulty<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (error) {
    if (error instanceof DeltaFault || error instanceof TypeError) return undefined
    throw error
  }
}

/** The delta from a base to a text; `undefined` where the text is better sent whole. Lets others run meanwhile. */
export async function encodeDelta(base: ObjectText, json: string): Promise<string | undefined> {
  const delta = new DeltaEncoder(base.id, encoder.encode(base.json), encoder.encode(json))
  for (let turnedAtMs = performance.now(); !delta.advance(SLICE_BYTES); ) {
    if (performance.now() - turnedAtMs < SLICE_MS) continue
    await new Promise((resolve) => setTimeout(resolve, 0))
    turnedAtMs = performance.now()
  }
  return delta.take()
}
