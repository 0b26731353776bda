import { createHash, hash } from 'node:crypto'
import type { Environment } from '../environment.ts'
import type { Limits } from '../limits.ts'
import type { BufferPool } from '../memory/buffer-pool.ts'
import type { ObjectBatch } from '../object/batch.ts'
import type { Element } from '../object/element.ts'
import type { AssignedIds } from './assigned-ids.ts'
import { BatchBuilder } from './batch-builder.ts'
import { ObjectScan, SLICE_BYTES } from './object-scan.ts'

/** A batch is handed on once it holds this much; one object can make it larger. */
export const BATCH_BYTES = 262_144
const ASSIGNED_HEX_DIGITS = 32

const SPACE = 0x20

export interface InspectOptions {
  readonly signal: AbortSignal
  /** Collects the assigned ids. */
  readonly assigned?: AssignedIds
  /** Told of each object whose text is not kept byte for byte: see `OneLineText`. */
  readonly onRewritten?: () => void
  /** For the lines of batches: who needs those of a batch no more may give them back. */
  readonly bufferPool?: BufferPool | undefined
  /** That of the process by default. */
  readonly environment?: Environment | undefined
}

/**
 * Inspects each element: that it is one JSON object (RFC 8259), its id, its references. Yields them as lines, in their
 * order, about 256 KB at a time; the consumer may keep a batch. Yields to the event loop about every 5 ms, also inside
 * a large object. Throws `invalid_json`, `invalid_utf8`, `invalid_object`, `invalid_id` and `nesting_too_deep`, naming
 * part, element and byte; the signal's reason once it has aborted; and the errors of `elements`.
 */
export async function* inspectBatches(
  elements: AsyncIterable<readonly Element[]>,
  limits: Pick<Limits, 'nestingMax'>,
  options: InspectOptions,
): AsyncGenerator<ObjectBatch, void, undefined> {
  const inspector = new Inspector(limits.nestingMax, options)
  for await (const batch of elements) {
    for (const element of batch) {
      const more = inspector.inspect(element)
      if (more !== undefined) await more
      if (inspector.batch.bytes >= BATCH_BYTES) yield inspector.batch.take()
    }
    options.signal.throwIfAborted()
  }
  if (inspector.batch.count > 0) yield inspector.batch.take()
}

class Inspector {
  readonly batch: BatchBuilder
  readonly #options: InspectOptions
  readonly #scan: ObjectScan<Element>

  constructor(nestingMax: number, options: InspectOptions) {
    this.#options = options
    this.batch = new BatchBuilder(options.bufferPool)
    const placeOf = ({ part, index }: Element): string => `part ${part}, element ${index}`
    this.#scan = new ObjectScan({ ...options, nestingMax, placeOf })
  }

  /** Adds the element's object to the batch; returns a promise only if the event loop must run in between. */
  inspect(element: Element): Promise<void> | undefined {
    const source = withoutSpaceAround(element.bytes)
    const scanning = this.#scan.scan(source, element, this.batch.references)
    if (scanning !== undefined) return this.#addOnceScanned(scanning, element, source)
    this.#add(element, source)
    return undefined
  }

  async #addOnceScanned(scanning: Promise<void>, element: Element, source: Uint8Array): Promise<void> {
    await scanning
    if (this.#scan.facts.id === undefined && source.length > SLICE_BYTES) await this.#addLargeWithoutId(element)
    else this.#add(element, source)
    await this.#scan.turnIfDue()
  }

  #add(element: Element, source: Uint8Array): void {
    const { facts, text } = this.#scan
    if (text.isRewritten) this.#options.onRewritten?.()
    if (facts.id === undefined) this.#addAssigned(element, text.finish(), hash('sha256', text.finish(), 'hex'))
    else this.batch.add(this.#scan.idOf(source, element), text.finish(), facts.claims)
  }

  async #addLargeWithoutId(element: Element): Promise<void> {
    if (this.#scan.text.isRewritten) this.#options.onRewritten?.()
    const text = this.#scan.text.finish()
    const digest = createHash('sha256')
    for (let at = 0; at < text.length; at += SLICE_BYTES) {
      digest.update(text.subarray(at, at + SLICE_BYTES))
      await this.#scan.turnIfDue()
    }
    this.#addAssigned(element, text, digest.digest('hex'))
  }

  #addAssigned(element: Element, text: Uint8Array, digest: string): void {
    const { isEmpty, claims } = this.#scan.facts
    const id = digest.slice(0, ASSIGNED_HEX_DIGITS)
    this.batch.addWithId(Buffer.from(id, 'latin1'), text, isEmpty, claims)
    this.#options.assigned?.add(element.part, element.index, id)
  }
}

function withoutSpaceAround(bytes: Uint8Array): Uint8Array {
  let start = 0
  let end = bytes.length
  while (start < end && isSpace(bytes[start])) start++
  while (end > start && isSpace(bytes[end - 1])) end--
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end)
}

function isSpace(byte: number): boolean {
  return byte === SPACE || byte === 0x0a || byte === 0x0d || byte === 0x09
}
