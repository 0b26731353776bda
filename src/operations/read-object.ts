import type { Environment } from '../environment.ts'
import type { Element } from '../object/element.ts'
import type { MemoryLease } from '../memory/memory-lease.ts'
import type { ObjectSelector } from '../object/graph-store.ts'
import { checkObjectId } from '../object/id.ts'
import { IdSet } from '../object/id-set.ts'
import { inspectBatches } from '../inspect/inspect.ts'
import { linePartsOf, type ObjectRecord, toObjectRecords } from '../object/line.ts'

/** The JSON text of one object; `undefined` if it is not held. Its bytes are leased if their number is known. */
export async function readObject(
  store: ObjectSelector,
  projectId: string,
  objectId: string,
  { signal, memory }: { readonly signal: AbortSignal; readonly memory?: MemoryLease },
): Promise<Uint8Array | undefined> {
  const id = checkObjectId(objectId)
  if (store.text !== undefined) return store.text(projectId, id, { signal, memory })
  const ids = new IdSet(1)
  ids.add(id)
  const selection = await store.select(projectId, ids, { signal })
  try {
    if (selection.objects === 0) return undefined
    await memory?.hold(selection.textBytes ?? 0)
    const pieces: Uint8Array[] = []
    for await (const piece of selection.lines({ signal })) pieces.push(piece)
    const line = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
    return line.subarray(id.length + 1, -1)
  } finally {
    selection.release()
  }
}

/**
 * Lines as records. The references are found by inspecting each object again, without limits: they applied when it
 * arrived.
 */
export async function* readRecords(
  lines: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  environment?: Environment,
): AsyncGenerator<readonly ObjectRecord[]> {
  const batches = inspectBatches(elementsOf(lines), { nestingMax: Number.MAX_SAFE_INTEGER }, { signal, environment })
  for await (const batch of batches) yield toObjectRecords(batch)
}

async function* elementsOf(lines: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Element[]> {
  let index = 0
  for await (const buffer of lines) {
    const elements: Element[] = []
    for (const { json } of linePartsOf(buffer)) elements.push({ bytes: json, part: 0, index: index++ })
    yield elements
  }
}
