import { createHash, hash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError, type StowageErrorCode } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { AssignedIds } from './assigned-ids.ts'
import type { ObjectBatch } from '../object/batch.ts'
import { BatchBuilder } from './batch-builder.ts'
import type { Element } from '../object/element.ts'
import { decodeId, type IdMember, ObjectFacts } from './facts.ts'
import { brokenRule, isObjectId, OBJECT_ID_BYTES_MAX, quoted } from '../object/id.ts'
import { ObjectScanner } from './json-scanner.ts'
import { ScanFault } from './json-tokens.ts'
import { OneLineText } from './one-line-text.ts'
import { firstBrokenByte } from '../object/utf8.ts'

/** A batch is handed on once it holds this much; one object can make it larger. */
const BATCH_BYTES = 262_144
/** Bytes between two checks of the clock: below 2 ms for the slowest text. */
const SLICE_BYTES = 131_072
const WORK_MS_MAX = 5
/** Copying a larger text takes a turn of its own. */
const LARGE_BYTES = 1_048_576
/** The cost of the smallest object, in bytes that are scanned in the same time. */
const OBJECT_COST_BYTES = 128
const ASSIGNED_HEX_DIGITS = 32

const SPACE = 0x20
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

export interface InspectOptions {
  readonly signal: AbortSignal
  /** Collects the assigned ids. */
  readonly assigned?: AssignedIds
  /** Told of each object whose text is not kept byte for byte: see `OneLineText`. */
  readonly onRewritten?: () => void
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
  readonly batch: BatchBuilder = new BatchBuilder()
  readonly #options: InspectOptions
  readonly #text = new OneLineText()
  readonly #facts = new ObjectFacts(this.#text)
  readonly #scanner: ObjectScanner
  #bytesSinceClock = 0
  readonly #environment: Environment
  #turnedAtMs: number

  constructor(nestingMax: number, options: InspectOptions) {
    this.#options = options
    this.#environment = options.environment ?? REAL_ENVIRONMENT
    this.#turnedAtMs = this.#environment.monotonicMs()
    this.#scanner = new ObjectScanner(this.#facts, nestingMax)
  }

  /** Adds the element's object to the batch; returns a promise only if the event loop must run in between. */
  inspect(element: Element): Promise<void> | undefined {
    const source = withoutSpaceAround(element.bytes)
    this.#facts.start(source, this.batch.references)
    this.#text.start(source)
    if (this.#bytesSinceClock + source.length > SLICE_BYTES) return this.#inspectInSlices(element, source)
    this.#bytesSinceClock += source.length + OBJECT_COST_BYTES
    this.#begin(element, source)
    this.#scan(element, source.length)
    this.#add(element, source)
    return undefined
  }

  async #inspectInSlices(element: Element, source: Uint8Array): Promise<void> {
    await this.#turnIfDue()
    this.#begin(element, source)
    for (let ended = false; !ended;) {
      ended = this.#scan(element, this.#scanner.at + SLICE_BYTES)
      await this.#turnIfDue()
    }
    // The next step copies all of the text, and the ids that it mentions.
    if (source.length > LARGE_BYTES) await this.#turn()
    if (this.#facts.id === undefined && source.length > SLICE_BYTES) await this.#addLargeWithoutId(element)
    else this.#add(element, source)
    await this.#turnIfDue()
  }

  async #turnIfDue(): Promise<void> {
    this.#bytesSinceClock = 0
    if (this.#environment.monotonicMs() - this.#turnedAtMs >= WORK_MS_MAX) await this.#turn()
  }

  async #turn(): Promise<void> {
    await this.#environment.nextTurn()
    this.#options.signal.throwIfAborted()
    this.#turnedAtMs = this.#environment.monotonicMs()
  }

  #begin(element: Element, source: Uint8Array): void {
    if (!isUtf8(source)) throw this.#refusal(element, 'invalid_utf8', firstBrokenByte(source), 'the text is not UTF-8')
    const first = source[0]
    if (first !== OPEN_OBJECT)
      throw this.#refusal(element, 'invalid_object', 0, 'an element must be a JSON object, which starts with "{"')
    if (source.length < 2 || source[source.length - 1] !== CLOSE_OBJECT) {
      throw this.#refusal(element, 'invalid_json', source.length - 1, 'the text of an object must end with "}"')
    }
    this.#scanner.start(source)
  }

  #scan(element: Element, until: number): boolean {
    try {
      return this.#scanner.scan(until)
    } catch (error) {
      if (error instanceof ScanFault) throw this.#refusal(element, error.code, error.at, error.message)
      throw error
    }
  }

  #add(element: Element, source: Uint8Array): void {
    const member = this.#facts.id
    if (this.#text.isRewritten) this.#options.onRewritten?.()
    if (member === undefined)
      this.#addAssigned(element, this.#text.finish(), hash('sha256', this.#text.finish(), 'hex'))
    else this.batch.add(this.#idOf(element, source, member), this.#text.finish(), this.#facts.claims)
  }

  async #addLargeWithoutId(element: Element): Promise<void> {
    if (this.#text.isRewritten) this.#options.onRewritten?.()
    const text = this.#text.finish()
    const digest = createHash('sha256')
    for (let at = 0; at < text.length; at += SLICE_BYTES) {
      digest.update(text.subarray(at, at + SLICE_BYTES))
      await this.#turnIfDue()
    }
    this.#addAssigned(element, text, digest.digest('hex'))
  }

  #addAssigned(element: Element, text: Uint8Array, digest: string): void {
    const id = digest.slice(0, ASSIGNED_HEX_DIGITS)
    this.batch.addWithId(Buffer.from(id, 'latin1'), text, this.#facts.isEmpty, this.#facts.claims)
    this.#options.assigned?.add(element.part, element.index, id)
  }

  #idOf(element: Element, source: Uint8Array, member: IdMember): Uint8Array {
    if (!member.isString) throw this.#refusal(element, 'invalid_object', member.at, 'the member "id" must be a string')
    const id = member.escaped ? decodeId(source, member.start, member.end) : source.subarray(member.start, member.end)
    if (id !== undefined && isObjectId(id)) return id
    const broken =
      id === undefined
        ? `is too long or holds a lone surrogate; it must be 1 to ${OBJECT_ID_BYTES_MAX} bytes of UTF-8`
        : brokenRule(id, OBJECT_ID_BYTES_MAX)
    throw this.#refusal(element, 'invalid_id', member.at, `the object's id ${broken}`)
  }

  /** `at` is a byte of the element. */
  #refusal(element: Element, code: StowageErrorCode, at: number, rule: string): StowageError {
    const id = this.#knownId(element)
    const known = id === undefined ? '' : `, id ${quoted(id)}`
    return new StowageError(
      code,
      `${rule} (part ${element.part}, element ${element.index}${known}, byte ${at} of the object)`,
    )
  }

  #knownId(element: Element): string | undefined {
    const member = this.#facts.id
    if (member === undefined || !member.isString) return undefined
    const source = withoutSpaceAround(element.bytes)
    const id = member.escaped
      ? decodeId(source, member.start, member.end)
      : source.subarray(member.start, Math.min(member.end, member.start + OBJECT_ID_BYTES_MAX))
    return id === undefined ? undefined : Buffer.from(id).toString('utf8')
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
