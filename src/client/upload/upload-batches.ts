import { ACCEPT_HEADER, BLOCKS_MEDIA_TYPE } from '../../blocks/ready-blocks.ts'
import { checkCount, CONCURRENCY_MAX, runWorkers } from '../common/concurrency.ts'
import { completeText, type DraftText } from '../common/content-id.ts'
import { fetchHeld, parseJson, type Remote } from '../http/remote.ts'
import type { CallOptions, ObjectText } from '../common/types.ts'
import { type BlockCompressor, blockBody, platformCompressor } from './block-body.ts'
import { isAboutBase, isCuredByLess, isRefusal, isTooLarge, mayBeAboutForm } from './refusals.ts'
import { arrayBody, type UploadBody } from './upload-body.ts'
import { DraftGroups, type UploadSource } from './upload-source.ts'

/** The progress of an upload. */
export interface UploadProgress {
  /** Objects that were read from the source so far. */
  readonly objects: number
  /** Of these, those that the server held already. */
  readonly held: number
  /** Of these, the objects that were sent and acknowledged. */
  readonly sent: number
  /** Requests that the server acknowledged. */
  readonly requests: number
  /** How many of the sent ones were sent as deltas. */
  readonly deltas: number
  /** Bytes of JSON that were acknowledged; a delta counts with its own size. */
  readonly jsonBytes: number
  /** Bytes of request bodies on the wire. */
  readonly wireBytes: number
  /** Requests that had to be sent again. */
  readonly retries: number
}

/** The outcome of an upload. */
export interface UploadResult extends UploadProgress {
  /** Objects that were new to the server, as it counts them. */
  readonly created: number
  /** Objects that the server held with another text; that one stays. */
  readonly differing: number
  /**
   * Objects whose text the server does not keep byte for byte: it removes line ends and tabs between tokens, and
   * escapes U+0085, U+2028 and U+2029.
   */
  readonly rewritten: number
  /** The id of the last object of the source; `undefined` for an empty source. */
  readonly lastId: string | undefined
}

/** Options for uploading objects. */
export interface UploadOptions extends CallOptions {
  /** Told after each request, and when ids were asked about and some are held already. */
  readonly onProgress?: (progress: UploadProgress) => void
  /** Requests at a time. 4 by default, 1,000 at most. */
  readonly concurrency?: number
  /**
   * JSON in one request, about. 2,097,152 by default, 268,435,456 at most. If a request is too large for the server or
   * for a proxy, its halves are sent instead, and none that is larger.
   */
  readonly batchBytes?: number
  /** Send every object, without asking first which ones the server holds, a thousand at a time. False by default. */
  readonly sendAll?: boolean
  /**
   * The form of a batch: a gzip file as the body, or as the only part of a multipart form. By default, ready blocks if
   * the server takes them and the platform can make them, which saves the server most of the work and costs more bytes;
   * otherwise gzip.
   */
  readonly body?: 'gzip' | 'multipart'
}

/** An object on its way, as it will be sent. */
interface Pending {
  readonly object: ObjectText
  /** The delta if the object is sent as one, otherwise its text. */
  readonly sent: string
}

type Tally = { -readonly [K in Exclude<keyof UploadResult, 'lastId'>]: number }

const CONCURRENCY = 4
/** Less in a request costs the server more: with half of it, the same objects took a tenth more processor time. */
export const BATCH_BYTES = 2_097_152
/** A batch is one text on its way, and no text has 512 MB. */
export const BATCH_BYTES_MAX = 268_435_456
const SUMMARY_BYTES_MAX = 67_108_864
/** Characters of text that are kept for deltas, for each one that a batch may have. */
const KEPT_PER_SENT = 4
/**
 * Uploads all objects and resolves when all are durable. Memory is bounded by `concurrency`, not by the source. The
 * last object is sent after all others are acknowledged: if children come before parents, nobody sees a root without
 * the objects below it.
 */
export async function upload(remote: Remote, source: UploadSource, options: UploadOptions): Promise<UploadResult> {
  return new Uploader(remote, options).run(source)
}

class Uploader {
  readonly #remote: Remote
  readonly #options: UploadOptions
  readonly #concurrency: number
  #batchBytes: number
  readonly #tally: Tally = {
    objects: 0,
    held: 0,
    sent: 0,
    requests: 0,
    deltas: 0,
    jsonBytes: 0,
    wireBytes: 0,
    retries: 0,
    created: 0,
    differing: 0,
    rewritten: 0,
  }
  #takesDeltas: boolean
  /** Set once the server said that it takes ready blocks. */
  #blockCompressor: BlockCompressor | undefined
  #mayTakeBlocks: boolean
  #pending: Pending[] = []
  #pendingBytes = 0

  constructor(remote: Remote, options: UploadOptions) {
    this.#remote = remote
    this.#options = options
    this.#concurrency = checkCount('concurrency', options.concurrency ?? CONCURRENCY, CONCURRENCY_MAX)
    this.#batchBytes = checkCount('batchBytes', options.batchBytes ?? BATCH_BYTES, BATCH_BYTES_MAX)
    this.#takesDeltas = options.body !== 'multipart'
    this.#mayTakeBlocks = options.body === undefined
  }

  async run(source: UploadSource): Promise<UploadResult> {
    const drafts = new DraftGroups(source, this.#takesDeltas)
    const groups = drafts.allButLast()
    const { signal } = this.#options
    try {
      await runWorkers(this.#concurrency, signal, (workSignal) => this.#work(groups, workSignal))
    } finally {
      groups.return(undefined).catch(() => undefined)
    }
    const lastId = await this.#sendRest(drafts.last, signal)
    return { ...this.#tally, lastId }
  }

  async #work(groups: AsyncGenerator<readonly DraftText[]>, signal: AbortSignal): Promise<void> {
    for (let next = await groups.next(); next.done !== true; next = await groups.next()) {
      signal.throwIfAborted()
      await this.#addMissing(next.value, signal)
      while (this.#pendingBytes >= this.#batchBytes) await this.#send(this.#takeBatch(), signal)
    }
  }

  async #sendRest(last: DraftText | undefined, signal: AbortSignal | undefined): Promise<string | undefined> {
    if (last === undefined) return undefined
    const isAlone = this.#tally.requests > 0 || this.#pending.some(isDelta)
    if (isAlone) await this.#postPending(signal)
    const { id } = await this.#addMissing([last], signal)
    await this.#postPending(signal)
    return id
  }

  async #postPending(signal: AbortSignal | undefined): Promise<void> {
    while (this.#pending.length > 0) await this.#send(this.#takeBatch(), signal)
  }

  /** Adds the objects that the server lacks to the next batches. Returns the last of them. */
  async #addMissing(drafts: readonly DraftText[], signal: AbortSignal | undefined): Promise<ObjectText> {
    const texts = await Promise.all(drafts.map(completeText))
    this.#tally.objects += texts.length
    const held =
      this.#options.sendAll === true
        ? new Set<string>()
        : await fetchHeld(
            this.#remote,
            texts.map(({ id }) => id),
            signal,
            (headers) => this.#noteForms(headers),
          )
    for (const text of texts) {
      if (held.has(text.id)) {
        this.#tally.held += 1
      } else {
        this.#add({
          object: { id: text.id, json: text.json },
          sent: (this.#takesDeltas ? text.delta : undefined) ?? text.json,
        })
      }
    }
    if (held.size > 0) this.#tell()
    return texts[texts.length - 1]
  }

  #add(pending: Pending): void {
    this.#pending.push(pending)
    this.#pendingBytes += weightOf(pending)
  }

  #takeBatch(): readonly Pending[] {
    let bytes = 0
    let count = 0
    while (count < this.#pending.length && (count === 0 || bytes + weightOf(this.#pending[count]) <= this.#batchBytes))
      bytes += weightOf(this.#pending[count++])
    this.#pendingBytes -= bytes
    return this.#pending.splice(0, count)
  }

  /**
   * If the server refuses a batch with deltas, the batch is sent whole, and the second response counts. A batch that is
   * too large is sent again in halves.
   */
  async #send(batch: readonly Pending[], signal: AbortSignal | undefined): Promise<void> {
    const deltas = batch.filter(isDelta)
    if (deltas.length > 0 && !this.#takesDeltas) return this.#addWhole(batch)
    try {
      await this.#post(batch, deltas.length, signal)
    } catch (error) {
      if (!isRefusal(error)) throw error
      if (batch.length > 1 && isCuredByLess(error)) return this.#addHalves(batch)
      if (deltas.length === 0) throw error
      if (!isAboutBase(error)) this.#takesDeltas = false
      this.#addWhole(batch)
    }
  }

  /** They go first, as they would have: the last object must stay behind all others. */
  #addHalves(batch: readonly Pending[]): void {
    const bytes = batch.reduce((sum, pending) => sum + weightOf(pending), 0)
    this.#batchBytes = Math.min(this.#batchBytes, Math.ceil(bytes / 2))
    this.#pending = [...batch, ...this.#pending]
    this.#pendingBytes += bytes
  }

  #addWhole(batch: readonly Pending[]): void {
    for (const { object } of batch) this.#add({ object, sent: object.json })
  }

  /** If the server refuses a batch as ready blocks, it is sent as JSON, and the second response counts. */
  async #post(batch: readonly Pending[], deltas: number, signal: AbortSignal | undefined): Promise<void> {
    const blocks = deltas > 0 ? undefined : await this.#blocksOf(batch)
    if (blocks !== undefined) {
      try {
        return await this.#postBody(batch, { ...blocks, deltas }, signal)
      } catch (error) {
        if (!isRefusal(error) || !mayBeAboutForm(error)) throw error
        if (!isTooLarge(error)) this.#stopBlocks()
      }
    }
    const texts = batch.map(({ sent }) => sent)
    const body = await arrayBody(texts, { hasDeltas: deltas > 0, form: this.#options.body })
    await this.#postBody(batch, { ...body, deltas }, signal)
  }

  async #blocksOf(batch: readonly Pending[]): Promise<(UploadBody & { readonly jsonBytes: number }) | undefined> {
    if (this.#blockCompressor === undefined) return undefined
    const made = await blockBody(
      batch.map(({ object }) => object),
      this.#blockCompressor,
    )
    if (made === undefined) return undefined
    const { body, jsonBytes } = made
    return { headers: { 'Content-Type': BLOCKS_MEDIA_TYPE }, body, bodyBytes: body.size, jsonBytes }
  }

  async #postBody(
    batch: readonly Pending[],
    { jsonBytes, deltas, ...body }: UploadBody & { readonly jsonBytes: number; readonly deltas: number },
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const tally = this.#tally
    let tries = 0
    const { created, differing, rewritten } = await this.#remote.retry.run(signal, () => {
      if (tries++ > 0) tally.retries += 1
      return this.#postOnce(body, signal)
    })
    tally.requests += 1
    tally.deltas += deltas
    tally.sent += batch.length
    tally.jsonBytes += jsonBytes
    tally.wireBytes += body.bodyBytes
    tally.created += created ?? batch.length
    tally.differing += differing ?? 0
    tally.rewritten += rewritten ?? 0
    this.#tell()
  }

  async #postOnce(body: UploadBody, signal: AbortSignal | undefined): Promise<ServerCounts> {
    const { connection, projectId } = this.#remote
    const answer = await connection.request({ method: 'POST', path: ['objects', projectId], ...body, signal })
    // Not every service describes its success; a page for people comes from a proxy.
    if (answer.hasType('text/html')) answer.checkType('application/json')
    this.#noteForms(answer.headers)
    const text = await answer.text(SUMMARY_BYTES_MAX)
    if (!answer.hasType('application/json')) return {}
    const { created, differing, rewritten } = parseJson(text, answer.what)
    return {
      ...(typeof created === 'number' ? { created } : {}),
      ...(typeof differing === 'number' ? { differing } : {}),
      ...(typeof rewritten === 'number' ? { rewritten } : {}),
    }
  }

  #noteForms(headers: Headers): void {
    if (!this.#mayTakeBlocks || this.#blockCompressor !== undefined) return
    const accepted = headers.get(ACCEPT_HEADER)?.split(',') ?? []
    if (accepted.some((type) => type.trim() === BLOCKS_MEDIA_TYPE)) this.#blockCompressor = platformCompressor()
  }

  #stopBlocks(): void {
    this.#mayTakeBlocks = false
    this.#blockCompressor = undefined
  }

  #tell(): void {
    const { created: _created, differing: _differing, rewritten: _rewritten, ...progress } = this.#tally
    this.#options.onProgress?.(progress)
  }
}

/**
 * The weight of an object in a batch: the bytes to send, and something for the text that is kept in case a delta is
 * refused.
 */
function weightOf({ object, sent }: Pending): number {
  return sent === object.json ? sent.length : sent.length + Math.ceil(object.json.length / KEPT_PER_SENT)
}

/** The counts of a response, if it has them. */
interface ServerCounts {
  readonly created?: number
  readonly differing?: number
  readonly rewritten?: number
}

function isDelta({ object, sent }: Pending): boolean {
  return sent !== object.json
}
