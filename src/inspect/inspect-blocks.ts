import { StowageError } from '../errors.ts'
import { type Limits, tooLarge } from '../limits.ts'
import type { ObjectBatch, ReadyBlock } from '../object/batch.ts'
import { OBJECT_ID_BYTES_MAX } from '../object/id.ts'
import type { ReceivedBlock, ReceivedBlocks } from '../object/received-block.ts'
import { BatchBuilder } from './batch-builder.ts'
import type { InspectOptions } from './inspect.ts'
import { ObjectScan } from './object-scan.ts'

const TAB = 0x09
const LF = 0x0a

/** The place of a line, for messages. */
interface Line {
  block: number
  index: number
}

/**
 * Inspects each line of blocks as `inspectBatches` does each element, and that its text can be kept byte for byte, under
 * the id that the line starts with. Yields a batch for each group of blocks. Its lines are the inflated bytes themselves.
 *
 * Throws `invalid_blocks`, `object_too_large`, and what `inspectBatches` throws, naming block and line.
 */
export async function* inspectBlocks(
  groups: AsyncIterable<ReceivedBlocks>,
  limits: Pick<Limits, 'nestingMax' | 'objectBytesMax'>,
  options: Pick<InspectOptions, 'signal' | 'environment' | 'bufferPool'>,
): AsyncGenerator<ObjectBatch, void, undefined> {
  const inspector = new BlockInspector(limits, options)
  for await (const { blocks, raw } of groups) {
    let start = 0
    inspector.begin(raw)
    for (const block of blocks) {
      const end = start + block.rawBytes
      const more = inspector.inspect(block, raw, start, end)
      if (more !== undefined) await more
      start = end
    }
    yield inspector.takeOf(raw)
    options.signal.throwIfAborted()
  }
}

class BlockInspector {
  readonly #limits: Pick<Limits, 'objectBytesMax'>
  readonly #scan: ObjectScan<Line>
  readonly #batch: BatchBuilder
  readonly #line: Line = { block: 0, index: 0 }
  /** A view with the search of `Buffer`: that of `Uint8Array` looks at one byte after the other. */
  #searched: Buffer = Buffer.alloc(0)
  #blocks: ReadyBlock[] = []
  /** Of the current line: where its text starts, and its line feed. */
  #textStart = 0
  #lineEnd = 0

  constructor(
    limits: Pick<Limits, 'nestingMax' | 'objectBytesMax'>,
    options: Pick<InspectOptions, 'signal' | 'environment' | 'bufferPool'>,
  ) {
    this.#limits = limits
    this.#batch = new BatchBuilder(options.bufferPool)
    this.#scan = new ObjectScan({ ...options, nestingMax: limits.nestingMax, placeOf })
  }

  /** To be called before the first block that inflates to bytes of `raw`. */
  begin(raw: Uint8Array): void {
    this.#searched = Buffer.from(raw.buffer, raw.byteOffset, raw.length)
  }

  /** The blocks so far; `raw` is what they inflate to. */
  takeOf(raw: Uint8Array): ObjectBatch {
    const blocks = this.#blocks
    this.#blocks = []
    return { ...this.#batch.takeOf(raw), blocks }
  }

  /**
   * Adds the objects of the block, which inflates to bytes `start` to `end`; returns a promise only if the event loop
   * must run in between.
   */
  inspect(block: ReceivedBlock, raw: Uint8Array, start: number, end: number): Promise<void> | undefined {
    this.#line.block = block.index
    this.#line.index = 0
    return this.#inspectFrom(block, raw, start, end)
  }

  #inspectFrom(block: ReceivedBlock, raw: Uint8Array, from: number, end: number): Promise<void> | undefined {
    for (let start = from; start < end; start = this.#lineEnd + 1) {
      this.#divide(raw, start, end)
      const text = raw.subarray(this.#textStart, this.#lineEnd)
      const scanning = this.#scan.scan(text, this.#line, this.#batch.references)
      if (scanning !== undefined) return this.#goOn(scanning, block, raw, start, end)
      this.#add(text, raw, start)
    }
    const { index } = this.#line
    const { stored, objects, rawCrc32, rawBytes } = block
    if (index !== objects)
      throw new StowageError(
        'invalid_blocks',
        `a block holds ${index} lines, but its header names ${objects} objects (block ${block.index})`,
      )
    this.#blocks.push({ count: objects, stored, rawBytes, rawCrc32 })
    return undefined
  }

  async #goOn(
    scanning: Promise<void>,
    block: ReceivedBlock,
    raw: Uint8Array,
    start: number,
    end: number,
  ): Promise<void> {
    await scanning
    this.#add(raw.subarray(this.#textStart, this.#lineEnd), raw, start)
    await this.#scan.turnIfDue()
    const more = this.#inspectFrom(block, raw, this.#lineEnd + 1, end)
    if (more !== undefined) await more
  }

  #divide(raw: Uint8Array, start: number, blockEnd: number): void {
    const end = this.#searched.indexOf(LF, start)
    if (end === -1 || end >= blockEnd)
      throw invalidLine('the last line of a block must end with a line feed', this.#line)
    const idEndMax = Math.min(end, start + OBJECT_ID_BYTES_MAX + 1)
    let tab = start
    while (tab < idEndMax && raw[tab] !== TAB) tab++
    if (tab === idEndMax)
      throw invalidLine(`a line must start with an id of at most ${OBJECT_ID_BYTES_MAX} bytes and a tab`, this.#line)
    this.#textStart = tab + 1
    this.#lineEnd = end
    if (end - tab - 1 > this.#limits.objectBytesMax)
      throw tooLarge('object_too_large', `an object (${placeOf(this.#line)})`, this.#limits.objectBytesMax)
  }

  #add(source: Uint8Array, raw: Uint8Array, start: number): void {
    const { facts, text } = this.#scan
    if (text.isRewritten) {
      const rule =
        'the text of a line must be as it is kept: without line ends and tabs, and with U+0085, U+2028 and U+2029 escaped'
      throw this.#scan.refusal('invalid_blocks', 0, rule, source, this.#line)
    }
    const id = this.#scan.idOf(source, this.#line)
    if (!startsLine(id, raw, start, this.#textStart - 1))
      throw this.#scan.refusal('invalid_blocks', 0, 'a line must start with the id of its object', source, this.#line)
    this.#batch.addHeld(this.#lineEnd + 1 - start, id.length, facts.claims)
    this.#line.index++
  }
}

/** Whether the id is the bytes from `start` to `end`. A loop, since ids are short. */
function startsLine(id: Uint8Array, raw: Uint8Array, start: number, end: number): boolean {
  if (id.length !== end - start) return false
  for (let at = 0; at < id.length; at++) if (id[at] !== raw[start + at]) return false
  return true
}

function placeOf({ block, index }: Line): string {
  return `block ${block}, line ${index}`
}

function invalidLine(problem: string, line: Line): StowageError {
  return new StowageError('invalid_blocks', `${problem} (${placeOf(line)})`)
}
