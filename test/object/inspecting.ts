import { StowageError } from '../../src/errors.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import type { ObjectBatch } from '../../src/object/batch.ts'
import type { Element } from '../../src/object/element.ts'
import { AssignedIds } from '../../src/inspect/assigned-ids.ts'
import type { AssignedId } from '../../src/object/wire-types.ts'
import { inspectBatches } from '../../src/inspect/inspect.ts'

export const never: AbortSignal = new AbortController().signal

/** An object as a batch holds it, taken apart again. */
export interface Inspected {
  readonly id: string
  readonly json: string
  readonly references: readonly string[]
  readonly claims: readonly string[]
}

export interface Inspection {
  readonly objects: readonly Inspected[]
  readonly assigned: readonly AssignedId[]
}

/** Texts as the elements of one part. */
export function elementsOf(texts: readonly (string | Uint8Array)[]): Element[] {
  return texts.map((text, index) => ({ bytes: typeof text === 'string' ? Buffer.from(text) : text, part: 0, index }))
}

export async function inspectAll(
  texts: readonly (string | Uint8Array)[],
  nestingMax: number = DEFAULT_LIMITS.nestingMax,
): Promise<Inspection> {
  const assigned = new AssignedIds(1_000)
  const objects: Inspected[] = []
  for await (const batch of inspectBatches(
    asBatches([elementsOf(texts)]),
    { nestingMax },
    { signal: never, assigned },
  )) {
    objects.push(...objectsOf(batch))
  }
  return { objects, assigned: assigned.list() }
}

/** The code and the message with which the text is refused. */
export async function refusalOf(
  text: string | Uint8Array,
  nestingMax?: number,
): Promise<{ readonly code: string; readonly message: string } | undefined> {
  try {
    await inspectAll([text], nestingMax)
    return undefined
  } catch (error) {
    if (error instanceof StowageError) return error
    throw error
  }
}

export async function* asBatches(batches: readonly (readonly Element[])[]): AsyncGenerator<readonly Element[]> {
  yield* batches
}

export function objectsOf(batch: ObjectBatch): Inspected[] {
  const objects: Inspected[] = []
  let start = 0
  for (let index = 0; index < batch.count; index++) {
    const line = Buffer.from(batch.lines.subarray(start, start + batch.lineBytes[index])).toString('utf8')
    start += batch.lineBytes[index]
    const idBytes = batch.idBytes[index]
    const id = Buffer.from(line).toString('utf8', 0, idBytes)
    if (!line.startsWith(`${id}\t`) || !line.endsWith('\n')) throw new Error(`not a line: ${JSON.stringify(line)}`)
    const references = namesOf(batch, index === 0 ? 0 : batch.claimEnds[index - 1], batch.referenceEnds[index])
    const claims = namesOf(batch, batch.referenceEnds[index], batch.claimEnds[index])
    objects.push({ id, json: line.slice(id.length + 1, -1), references, claims })
  }
  if (start !== batch.lines.length) throw new Error('the lines are longer than their lengths say')
  return objects
}

function namesOf(batch: ObjectBatch, first: number, after: number): string[] {
  const names: string[] = []
  for (let name = first; name < after; name++)
    names.push(
      Buffer.from(batch.names.subarray(name === 0 ? 0 : batch.nameEnds[name - 1], batch.nameEnds[name])).toString(
        'utf8',
      ),
    )
  return names
}
