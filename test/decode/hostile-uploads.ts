import { constants, deflateRawSync, gzipSync } from 'node:zlib'
import { MB } from '../../src/limits.ts'
import type { UploadSource } from '../../src/decode/wire.ts'
import { processorMs } from '../support/processor.ts'
import { BOMB_INFLATED_MB, FORM_TYPE, decode, errorOf, file, multipart } from './support.ts'
import { parseContentType } from '../../src/decode/header-value.ts'

export interface Outcome {
  readonly name: string
  readonly code?: string
  /** Processor time. */
  readonly tookMs: number
  /** Of the body, until it was refused. */
  readonly readBytes: number
  /** Beyond the highest peak before. */
  readonly grownBytes: number
  /**
   * The most processor time that passed between two turns of the event loop: unlike wall time it does not count what
   * other processes do.
   */
  readonly heldMs: number
}

const BOUNDARY_LINE = `--${FORM_TYPE.slice(FORM_TYPE.indexOf('=') + 1)}\r\n`

function* repeated(pattern: Buffer | string, bytes: number, opening: Buffer | string = ''): Generator<Uint8Array> {
  yield Buffer.from(opening as string)
  const one = Buffer.from(pattern as string)
  const chunk = Buffer.concat(Array.from({ length: Math.ceil(65_536 / one.length) }, () => one))
  for (let sent = 0; sent < bytes; sent += chunk.length) yield Buffer.from(chunk)
}

let readBytes = 0

async function* asBody(chunks: Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) {
    readBytes += chunk.length
    yield chunk
  }
}

function upload(contentType: string, chunks: Iterable<Uint8Array>): UploadSource {
  return {
    contentType: parseContentType(contentType),
    contentEncoding: undefined,
    contentLength: undefined,
    body: asBody(chunks),
  }
}

/** A gzip content that repeats one DEFLATE block: an opening and 1 GB of one byte. */
function* bomb(opening: string, fill: string): Generator<Uint8Array> {
  yield gzipSync('').subarray(0, 10)
  yield deflateRawSync(opening, { finishFlush: constants.Z_FULL_FLUSH })
  const block = deflateRawSync(Buffer.alloc(MB, fill), { finishFlush: constants.Z_FULL_FLUSH, level: 9 })
  yield* repeated(block, 1_024 * block.length)
}

function control(): UploadSource {
  const objects = `[${'{"id":"0123456789abcdef","values":[1.5,2.5,3.5,4.5]},'.repeat(20_000)}{}]`
  return upload(FORM_TYPE, [multipart([file(gzipSync(objects), 'application/gzip'), file(objects)])])
}

const cases: Record<string, () => UploadSource> = {
  control,
  'empty parts': () => upload(FORM_TYPE, repeated(`${BOUNDARY_LINE}\r\n\r\n`, 400_000 * (BOUNDARY_LINE.length + 4))),
  'tiny files': () => upload(FORM_TYPE, repeated(`${BOUNDARY_LINE}${file('').headers[0]}\r\n\r\n[]\r\n`, 50 * MB)),
  'large headers': () =>
    upload(
      FORM_TYPE,
      repeated(`${BOUNDARY_LINE}${file('').headers[0]}\r\nX-Long: ${'x'.repeat(80_000)}\r\n\r\n[]\r\n`, 50 * MB),
    ),
  'endless header': () => upload(FORM_TYPE, repeated('x: y\r\n', 50 * MB, BOUNDARY_LINE)),
  brackets: () => upload('application/json', repeated('[', 50 * MB)),
  nesting: () => upload('application/json', repeated('{"a":', 50 * MB, '[')),
  members: () => upload('application/gzip', repeated(gzipSync(''), 100_000 * 20)),
  'nested gzip': () => upload('application/gzip', [gzipSync(gzipSync(Buffer.alloc(20 * MB)))]),
  'bomb of spaces': () => upload('application/gzip', bomb('[', ' ')),
  'bomb in a file': () =>
    upload(FORM_TYPE, [Buffer.from(`${BOUNDARY_LINE}${file('').headers[0]}\r\n\r\n`), ...bomb('[', ' ')]),
  'bomb of one object': () => upload('application/gzip', bomb('[{"id":"a","x":"', 'x')),
}

/** Returns a function that ends the watch and tells for how long the loop was held at most. */
function watchLoop(): () => number {
  let heldMs = 0
  let last = process.cpuUsage()
  const turn = (): void => {
    const { user, system } = process.cpuUsage(last)
    heldMs = Math.max(heldMs, (user + system) / 1_000)
    last = process.cpuUsage()
  }
  const timer = setInterval(turn, 1)
  return () => {
    turn()
    clearInterval(timer)
    return heldMs
  }
}

/**
 * Runs in a process of its own: decodes an innocent upload as the control, then hostile ones, and prints what each one
 * ended in, how far it pushed the peak of resident memory beyond the control's, and how long it held the event loop.
 * The bodies are made while they are read, so that they cost nothing.
 */
for (const [name, make] of Object.entries(cases)) {
  const peakBefore = process.resourceUsage().maxRSS
  const source = make()
  readBytes = 0
  const beganMs = processorMs()
  const stopWatch = watchLoop()
  const error = await errorOf(decode(source, { inflatedBytesMax: BOMB_INFLATED_MB * MB }))
  const heldMs = stopWatch()
  const grownBytes = (process.resourceUsage().maxRSS - peakBefore) * 1_024
  const outcome: Outcome = { name, code: error?.code, tookMs: processorMs() - beganMs, readBytes, grownBytes, heldMs }
  process.stdout.write(`${JSON.stringify(outcome)}\n`)
}
