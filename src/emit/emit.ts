import { crc32 } from 'node:zlib'
import { linkedAbort } from '../async/abort.ts'
import { relayed } from '../async/relay.ts'
import { DeflatePool } from '../compression/deflate-pool.ts'
import { REAL_ENVIRONMENT, type Environment } from '../environment.ts'
import { StowageError } from '../errors.ts'
import { maskLines } from '../inspect/mask.ts'
import type { AttributeMask } from '../object/wire-types.ts'
import type { Fragment, PlannedSelection, Selection, SelectionReadOptions } from '../object/selection.ts'
import { GZIP_FRAME_BYTES, gzipFromFragments, type GzipOptions, storedBlock } from './gzip.ts'
import { jsonArray } from './json-array.ts'
import { type Heartbeat, Pacer, withHeartbeats } from './pacer.ts'
import { plannedGzip } from './planned-gzip.ts'
import { sliceBytes } from './slice.ts'

export type { Heartbeat } from './pacer.ts'

export interface EmitOptions {
  /** `text`: lines `<id> TAB <json> LF`. `json`: one array of the JSON texts. */
  readonly format: 'text' | 'json'
  readonly coding: 'gzip' | 'identity'
  /** Which attributes of the objects are sent. Only for `text`. */
  readonly mask?: AttributeMask
  /** Only for `text`. In gzip the line is inside the stream, and the bytes gathered so far are sent with it. */
  readonly heartbeat?: Heartbeat
  /** The first byte to send, and the one after the last. Only if `emittedLength` is known. */
  readonly start?: number
  readonly end?: number
}

export interface EmitContext extends SelectionReadOptions {
  /**
   * Compresses fragments that are not stored compressed. Without it, each response that needs one creates one and frees
   * it.
   */
  readonly compressor?: DeflatePool
  /** That of the process by default. */
  readonly environment?: Environment | undefined
}

/** The fastest level by measurement, and on segments of 128 KB smaller than `gzip -1`. */
const LEVEL = 1
const HEARTBEAT_BYTES_MAX = 65_535

/** A part of an answer of `length` bytes: from `start` up to, not including, `end`. */
interface Part {
  readonly start: number
  readonly end: number
  readonly length: number
}

/** The length of the whole response in bytes, if a plan determines it. */
export function emittedLength(selection: Selection, options: Omit<EmitOptions, 'start' | 'end'>): number | undefined {
  const { plan, objects } = selection
  if (plan === undefined || options.mask !== undefined || options.heartbeat !== undefined) return undefined
  if (options.format === 'text') return options.coding === 'gzip' ? plan.storedBytes + GZIP_FRAME_BYTES : plan.rawBytes
  // Each line loses its id, TAB and LF and gains a separator; the closing bracket comes on top. Without objects there
  // is no separator: `[]`.
  return options.coding === 'gzip' ? undefined : plan.rawBytes - plan.idBytes - objects + (objects === 0 ? 2 : 1)
}

/**
 * The objects of a selection as the body of a response, in large buffers that belong to the caller. Bytes are produced
 * as they are pulled. An early return or an abort closes the sources and frees the compressor; the caller keeps the
 * selection. Throws at once: `range_not_satisfiable` for a range outside the known length, and `not_supported` for a
 * range of a response of unknown length.
 */
export function emit(selection: Selection, options: EmitOptions, context: EmitContext): AsyncIterable<Uint8Array> {
  if (options.format === 'json' && (options.mask !== undefined || options.heartbeat !== undefined)) {
    throw new StowageError('not_supported', 'masks and heartbeats are for lines of text, not for a JSON array')
  }
  if (options.heartbeat !== undefined) checkHeartbeat(options.heartbeat)
  const length = emittedLength(selection, options)
  if (length !== undefined) {
    const { start = 0, end = length } = options
    checkRange(start, end, length)
    return pulled(context, () => sliced(selection, options, { start, end, length }, context))
  }
  if (options.start !== undefined || options.end !== undefined) {
    throw new StowageError('not_supported', 'a range can be sent only of a response whose length is known')
  }
  return pulled(context, (compressor) =>
    whole(selection, options, {
      signal: context.signal,
      compressor,
      roomBytes: roomOf(selection),
      memory: selection.memory,
      environment: context.environment,
    }),
  )
}

/** Nothing is made before the first pull, nor after an abort. */
function pulled(
  context: EmitContext,
  make: (compressor: DeflatePool) => AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const { signal, environment = REAL_ENVIRONMENT } = context
  let own: DeflatePool | undefined
  const open = (): AsyncIterable<Uint8Array> => {
    own = context.compressor === undefined ? new DeflatePool({ level: LEVEL, environment }) : undefined
    return make(context.compressor ?? (own as DeflatePool))
  }
  return relayed(open, {
    before: () => signal.throwIfAborted(),
    each: () => signal.throwIfAborted(),
    ended: () => own?.close(),
  })
}

/** A planned answer, or a part of one. */
function sliced(
  selection: Selection,
  options: EmitOptions,
  part: Part,
  context: SelectionReadOptions,
): AsyncIterable<Uint8Array> {
  const { start, end, length } = part
  const { format, coding } = options
  const plan = selection.plan as PlannedSelection
  const read = { signal: context.signal }
  if (start === end) return none()
  if (coding === 'gzip')
    return plannedGzip(plan, start, end, { ...read, roomBytes: roomOf(selection), memory: selection.memory })
  // The bracket at the end belongs to no object.
  if (format === 'json' && start === length - 1) return jsonArray(none(), { first: false })
  const { skip, lines } = start === 0 ? { skip: 0, lines: selection.lines(read) } : plan.linesFrom(format, start, read)
  const { memory } = selection
  return sliceBytes(format === 'json' ? jsonArray(lines, { first: start === skip, memory }) : lines, skip, end - start)
}

type WholeContext = GzipOptions & Pick<EmitContext, 'environment'>

function whole(selection: Selection, options: EmitOptions, context: WholeContext): AsyncIterable<Uint8Array> {
  if (options.heartbeat !== undefined) return kept(selection, options, options.heartbeat, context)
  if (options.format === 'json') {
    const array = jsonArray(selection.lines(context), { first: true, memory: context.memory })
    return options.coding === 'gzip' ? gzipFromFragments(uncompressed(array), context) : array
  }
  if (options.coding === 'identity') return textLines(selection, options, context)
  return gzipFromFragments(textFragments(selection, options, context), context)
}

/** Text that is kept alive by heartbeats. */
async function* kept(
  selection: Selection,
  options: EmitOptions,
  heartbeat: Heartbeat,
  context: WholeContext,
): AsyncGenerator<Uint8Array> {
  const { line } = heartbeat
  const pacer = new Pacer(heartbeat.intervalMs, context.environment)
  const { controller: stop, unlink } = linkedAbort(context.signal)
  const read = { signal: stop.signal }
  try {
    if (options.coding === 'gzip') {
      const beat = [{ deflated: storedBlock(line), rawBytes: line.length, crc32: crc32(line) }]
      yield* gzipFromFragments(withHeartbeats(textFragments(selection, options, read), beat, pacer, stop), {
        ...context,
        pacer,
      })
      return
    }
    for await (const lines of withHeartbeats(textLines(selection, options, read), line, pacer, stop)) {
      yield lines
      pacer.sent()
    }
  } finally {
    unlink()
  }
}

function roomOf(selection: Selection): () => number {
  return () => selection.roomBytes ?? Infinity
}

function textLines(selection: Selection, { mask }: EmitOptions, read: SelectionReadOptions): AsyncIterable<Uint8Array> {
  return mask === undefined ? selection.lines(read) : maskLines(selection.lines(read), mask)
}

function textFragments(
  selection: Selection,
  options: EmitOptions,
  read: SelectionReadOptions,
): AsyncIterable<readonly Fragment[]> {
  return options.mask === undefined ? selection.fragments(read) : uncompressed(textLines(selection, options, read))
}

async function* uncompressed(buffers: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Fragment[]> {
  for await (const lines of buffers) yield [{ lines }]
}

async function* none(): AsyncGenerator<Uint8Array> {}

function checkRange(start: number, end: number, length: number): void {
  if (Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start <= end && end <= length) return
  throw new StowageError(
    'range_not_satisfiable',
    `bytes ${start} to ${end} are outside the response, which has ${length} bytes`,
  )
}

function checkHeartbeat({ intervalMs, line }: Heartbeat): void {
  if (!(intervalMs > 0))
    throw new RangeError(`heartbeat.intervalMs is ${intervalMs}; it must be a positive number of milliseconds`)
  if (line.length <= HEARTBEAT_BYTES_MAX) return
  throw new RangeError(`heartbeat.line has ${line.length} bytes; it must have at most ${HEARTBEAT_BYTES_MAX}`)
}
