import assert from 'node:assert/strict'
import { StowageError, type StowageErrorCode } from '../../src/errors.ts'
import { DEFAULT_LIMITS, type Limits } from '../../src/limits.ts'
import { decodeUpload } from '../../src/decode/decode-upload.ts'
import type { UploadSource } from '../../src/decode/wire.ts'
import { parseContentType } from '../../src/decode/header-value.ts'

const BOUNDARY = 'a-boundary'

/**
 * A body in pieces of `size` bytes, each in memory of its own that is overwritten once the next piece has been asked
 * for.
 */
export async function* inChunks(bytes: Uint8Array, size: number = 65_536): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield Uint8Array.from(bytes.subarray(at, at + size))
}

export interface Sent {
  readonly type?: string
  readonly encoding?: string
  readonly length?: number
  readonly chunk?: number
}

export function source(body: Uint8Array | string, sent: Sent = {}): UploadSource {
  return {
    contentType: parseContentType(sent.type ?? 'application/json'),
    contentEncoding: sent.encoding,
    contentLength: sent.length,
    body: inChunks(Buffer.from(body as string), sent.chunk),
  }
}

export interface DecodedObject {
  readonly text: string
  readonly part: number
  readonly index: number
}

export async function decode(
  from: UploadSource,
  limits: Partial<Limits> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<DecodedObject[]> {
  const objects: DecodedObject[] = []
  for await (const batch of decodeUpload(from, { ...DEFAULT_LIMITS, ...limits }, { signal })) {
    for (const { bytes, part, index } of batch) objects.push({ text: Buffer.from(bytes).toString(), part, index })
  }
  return objects
}

export async function texts(from: UploadSource, limits: Partial<Limits> = {}): Promise<string[]> {
  return (await decode(from, limits)).map(({ text }) => text)
}

/** The code of the error that it ends in, or `undefined`. Anything but a `StowageError` fails the test. */
export async function codeOf(attempt: Promise<unknown>): Promise<StowageErrorCode | undefined> {
  return (await errorOf(attempt))?.code
}

export async function errorOf(attempt: Promise<unknown>): Promise<StowageError | undefined> {
  try {
    await attempt
    return undefined
  } catch (error) {
    assert.ok(error instanceof StowageError, `not a StowageError: ${(error as Error).stack}`)
    return error
  }
}

export interface Part {
  /** Lines without their ends. */
  readonly headers: readonly string[]
  readonly content: Uint8Array | string
}

/** The limit of inflated bytes that the hostile uploads run against. */
export const BOMB_INFLATED_MB = 256

export const FORM_TYPE: string = `multipart/form-data; boundary=${BOUNDARY}`

export function file(content: Uint8Array | string, type?: string, ...more: readonly string[]): Part {
  const headers = [
    'Content-Disposition: form-data; name="file"; filename="batch"',
    ...(type === undefined ? [] : [`Content-Type: ${type}`]),
    ...more,
  ]
  return { headers, content }
}

export function multipart(parts: readonly Part[], boundary: string = BOUNDARY): Buffer {
  const bytes = parts.flatMap(({ headers, content }) => [
    Buffer.from(`--${boundary}\r\n${headers.map((line) => `${line}\r\n`).join('')}\r\n`),
    Buffer.from(content as string),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...bytes, Buffer.from(`--${boundary}--\r\n`)])
}

/** Numbers from 0 up to, not including, 1, the same in every run (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
