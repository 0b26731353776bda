import { randomBytes } from 'node:crypto'
import { Semaphore } from '../../src/async/semaphore.ts'
import type { BlobInfo, CallOptions, PutOptions, ReadOptions } from '../../src/storage/backend.ts'
import type { BlobDriver } from '../../src/storage/driver.ts'
import { BlobExistsError, BlobNotFoundError, BlobRangeError } from '../../src/storage/storage-errors.ts'
import type { ConditionCheck } from './condition-check.ts'
import { PartBuffer } from './part-buffer.ts'
import { COURTESY, type S3Client, type S3Request } from './s3-client.ts'
import { S3Error } from './s3-error.ts'
import { NONCE_HEADER, PART_BYTES, putInParts, putWhole, type Upload } from './uploads.ts'
import { elementsOf, escaped, textOf } from './xml.ts'

/** What a put may hold without a place among the large ones. */
const SMALL_BYTES = 262_144
/** Large puts under way hold a part each: 64 MiB in all. The others wait, and so do their producers. */
const LARGE_PUTS_MAX = 8
/** Of one request that removes. */
const REMOVED_AT_ONCE_MAX = 1_000
/** Of a connection that the store closed while we sent. */
const CLOSED_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

interface HeldObject {
  readonly isOwn: boolean
  readonly sizeBytes: number
}

/** Blobs as objects of an S3 store: `<prefix><name>.b`. */
export class S3Blobs implements BlobDriver {
  readonly #client: S3Client
  readonly #conditions: ConditionCheck
  readonly #largePuts = new Semaphore(LARGE_PUTS_MAX)

  constructor(client: S3Client, conditions: ConditionCheck) {
    this.#client = client
    this.#conditions = conditions
  }

  async put(name: string, content: AsyncIterable<Uint8Array>, { signal }: PutOptions): Promise<{ sizeBytes: number }> {
    const upload = { key: this.#client.addresses.keyOf(name), nonce: randomBytes(16).toString('hex'), signal }
    await this.#conditions.beforePut(signal)
    const part = new PartBuffer(content)
    if (!(await part.fill(SMALL_BYTES))) return this.#once(name, upload, () => this.#putPart(upload, part))
    return this.#largePuts.run(signal, async () => {
      const isLarger = await part.fill(PART_BYTES)
      return this.#once(name, upload, () =>
        isLarger ? putInParts(this.#client, upload, part) : this.#putPart(upload, part),
      )
    })
  }

  async read(name: string, start: number, end: number, { signal, into }: ReadOptions): Promise<Uint8Array> {
    if (start === end) {
      const sizeBytes = await this.#sizeOf(name, signal)
      if (end > sizeBytes) throw new BlobRangeError(name, end, sizeBytes)
      return new Uint8Array(0)
    }
    const key = this.#client.addresses.keyOf(name)
    const headers = { range: `bytes=${start}-${end - 1}` }
    try {
      const answer = await this.#client.send({ method: 'GET', key, headers, answerBytesMax: end - start, into, signal })
      if (answer.body.length === end - start) return answer.body
      throw new BlobRangeError(name, end, start + answer.body.length)
    } catch (error) {
      if (isStatus(error, 416)) throw new BlobRangeError(name, end, await this.#sizeOf(name, signal))
      throw error instanceof S3Error && error.isAbsentObject ? new BlobNotFoundError(name) : error
    }
  }

  async remove(names: readonly string[]): Promise<void> {
    const keys = [...new Set(names)].map((name) => this.#client.addresses.keyOf(name))
    for (let from = 0; from < keys.length; from += REMOVED_AT_ONCE_MAX)
      await this.#removeKeys(keys.slice(from, from + REMOVED_AT_ONCE_MAX))
  }

  async *list(prefix: string, { signal }: CallOptions): AsyncGenerator<readonly BlobInfo[], void, void> {
    const { addresses } = this.#client
    let page: Record<string, string> = {}
    for (;;) {
      const query = { 'list-type': '2', prefix: `${addresses.prefix}${prefix}`, ...page }
      const { body } = await this.#client.send({ method: 'GET', query, signal })
      const xml = Buffer.from(body).toString('utf8')
      // A page may be empty, the last one too.
      yield elementsOf(xml, 'Contents').flatMap((element) => this.#infoOf(element) ?? [])
      const token = textOf(xml, 'NextContinuationToken') ?? ''
      if (textOf(xml, 'IsTruncated') !== 'true' || token === '') return
      page = { 'continuation-token': token }
    }
  }

  #infoOf(element: string): BlobInfo | undefined {
    const name = this.#client.addresses.nameOf(textOf(element, 'Key') ?? '')
    if (name === undefined) return undefined
    const sizeBytes = Number(textOf(element, 'Size'))
    return { name, sizeBytes, modifiedAtMs: Date.parse(textOf(element, 'LastModified') ?? '') }
  }

  async #putPart(upload: Upload, part: PartBuffer): Promise<number> {
    await putWhole(this.#client, upload, part)
    return part.sizeBytes
  }

  /**
   * An object that is there may be our own, when the answer to an earlier attempt was lost. When nobody will know of it,
   * it is removed. A store that refuses a name may also close the connection before we have sent the content, and then
   * its answer can be lost at each attempt.
   */
  async #once(name: string, upload: Upload, put: () => Promise<number>): Promise<{ sizeBytes: number }> {
    try {
      return { sizeBytes: await put() }
    } catch (error) {
      const { signal } = upload
      const look = { ...(error instanceof S3Error ? {} : COURTESY), signal }
      const held = mayBeHeld(error) ? await this.#held(upload, look) : undefined
      if (held?.isOwn === true) return { sizeBytes: held.sizeBytes }
      if (held !== undefined || isStatus(error, 412)) throw new BlobExistsError(name)
      if (!isRefusal(error)) await this.#removeOwn(upload).catch(() => undefined)
      throw error
    }
  }

  async #removeOwn(upload: Upload): Promise<void> {
    if ((await this.#held(upload, COURTESY))?.isOwn === true)
      await this.#client.send({ method: 'DELETE', key: upload.key, ...COURTESY })
  }

  /** The object of this name, and whether this upload made it. */
  async #held({ key, nonce }: Upload, options: Partial<S3Request>): Promise<HeldObject | undefined> {
    try {
      const { headers } = await this.#client.send({ ...options, method: 'HEAD', key })
      return { isOwn: headers[NONCE_HEADER] === nonce, sizeBytes: Number(headers['content-length']) }
    } catch (error) {
      if (isStatus(error, 404)) return undefined
      throw error
    }
  }

  async #sizeOf(name: string, signal: AbortSignal | undefined): Promise<number> {
    try {
      const { headers } = await this.#client.send({ method: 'HEAD', key: this.#client.addresses.keyOf(name), signal })
      return Number(headers['content-length'])
    } catch (error) {
      throw isStatus(error, 404) ? new BlobNotFoundError(name) : error
    }
  }

  async #removeKeys(keys: readonly string[]): Promise<void> {
    const objects = keys.map((key) => `<Object><Key>${escaped(key)}</Key></Object>`).join('')
    const xml = `<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Quiet>true</Quiet>${objects}</Delete>`
    const { body } = await this.#client.send({ method: 'POST', query: { delete: '' }, body: [Buffer.from(xml)] })
    const failures = elementsOf(Buffer.from(body).toString('utf8'), 'Error').filter(
      (failure) => textOf(failure, 'Code') !== 'NoSuchKey',
    )
    if (failures.length === 0) return
    const [code, key] = ['Code', 'Key'].map((element) => textOf(failures[0], element))
    throw new Error(`the S3 store did not remove ${failures.length} of ${keys.length} objects: ${code} for ${key}`)
  }
}

/** The object is there, or its upload is gone, after an attempt whose answer was lost; or every attempt lost it. */
function mayBeHeld(error: unknown): boolean {
  if (!(error instanceof S3Error)) return CLOSED_CODES.has((error as NodeJS.ErrnoException | undefined)?.code ?? '')
  return error.isAfterUnknownOutcome && (error.status === 412 || error.s3Code === 'NoSuchUpload')
}

/** Nothing was stored, for certain. */
function isRefusal(error: unknown): boolean {
  return error instanceof S3Error && (error.status < 500 || error.isFull) && !error.isAfterUnknownOutcome
}

function isStatus(error: unknown, status: number): boolean {
  return error instanceof S3Error && error.status === status
}
