import { applyDelta, DeltaFault, parseDelta } from '../../delta/delta.ts'
import { DeltaEncoder } from '../../delta/encode.ts'
import { listTexts } from './list.ts'
import type { Remote } from '../http/remote.ts'
import type { ObjectText } from '../common/types.ts'

/** Provides the texts of objects that the client has already. */
export interface ObjectTexts {
  /** The texts in the order of `ids`, `undefined` for missing ones. */
  getMany(ids: readonly string[]): Promise<readonly (string | undefined)[]>
}

/**
 * Deltas that are applied together: few at first, fewer if they lead to more than this much text, and never more than
 * some.
 */
const FIRST_AT_ONCE = 4
const AT_ONCE_MAX = 256
const BATCH_CHARACTERS = 2_097_152
/** A delta that leads to more is not undone; its object is asked for instead. */
const TEXT_BYTES_MAX = 67_108_864
const SLICE_BYTES = 262_144
const SLICE_MS = 20

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Whether the text that arrived for an object is a delta. */
function isDelta({ json }: ObjectText): boolean {
  return json.startsWith('[')
}

/**
 * The objects with their texts, in their order, in batches: a short delta may lead to a long text. One whose base is
 * not there, or is another than the server thinks, is asked for by its id.
 */
export async function* applyDeltas(
  batch: readonly ObjectText[],
  bases: ObjectTexts,
  remote: Remote,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly ObjectText[]> {
  if (!batch.some(isDelta)) {
    yield batch
    return
  }
  let atOnce = FIRST_AT_ONCE
  for (let at = 0; at < batch.length;) {
    const objects = batch.slice(at, at + atOnce)
    const texts = await textsOf(objects.filter(isDelta), bases, remote, signal)
    yield objects.map((object) => (isDelta(object) ? { id: object.id, json: texts.get(object.id) as string } : object))
    at += objects.length
    let characters = 0
    for (const text of texts.values()) characters += text.length
    atOnce = characters > BATCH_CHARACTERS ? Math.ceil(atOnce / 4) : Math.min(AT_ONCE_MAX, atOnce * 2)
  }
}

/** The texts of all of them. */
async function textsOf(
  deltas: readonly ObjectText[],
  bases: ObjectTexts,
  remote: Remote,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, string>> {
  const texts = await undone(deltas, bases)
  const lacking = deltas.map(({ id }) => id).filter((id) => !texts.has(id))
  if (lacking.length === 0) return texts
  for await (const found of listTexts(remote, lacking, { signal, strict: true }))
    for (const { id, json } of found) texts.set(id, json)
  return texts
}

async function undone(deltas: readonly ObjectText[], bases: ObjectTexts): Promise<Map<string, string>> {
  const parsed = deltas.flatMap(({ id, json }) => {
    const delta = unlessFaulty(() => parseDelta(json))
    return delta === undefined ? [] : [{ id, delta }]
  })
  const found = await bases.getMany(parsed.map(({ delta }) => delta.baseId))
  const texts = new Map<string, string>()
  for (const [at, { id, delta }] of parsed.entries()) {
    const base = found[at]
    const text =
      base === undefined
        ? undefined
        : unlessFaulty(() => decoder.decode(applyDelta(delta, encoder.encode(base), TEXT_BYTES_MAX)))
    if (text !== undefined) texts.set(id, text)
  }
  return texts
}

function unlessFaulty<T>(make: () => T): T | undefined {
  try {
    return make()
  } catch (error) {
    if (error instanceof DeltaFault || error instanceof TypeError) return undefined
    throw error
  }
}

/** The delta from a base to a text; `undefined` if the text is better sent whole. Yields to other work meanwhile. */
export async function encodeDelta(base: ObjectText, json: string): Promise<string | undefined> {
  const delta = new DeltaEncoder(base.id, encoder.encode(base.json), encoder.encode(json))
  for (let turnedAtMs = performance.now(); !delta.advance(SLICE_BYTES);) {
    if (performance.now() - turnedAtMs < SLICE_MS) continue
    await new Promise((resolve) => setTimeout(resolve, 0))
    turnedAtMs = performance.now()
  }
  return delta.take()
}
