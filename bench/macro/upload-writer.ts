import { createWriteStream, type WriteStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

export interface UploadWriterOptions {
  /** JSON in one request, about. */
  readonly batchBytes: number
  /** JSON in the samples for references, at most about. */
  readonly sampleBytesMax: number
}

export interface WrittenUploads {
  /** Names in the folder. */
  readonly uploadFiles: readonly string[]
  readonly uploadObjects: number
  readonly uploadJsonBytes: number
  readonly uploadGzipBytes: number
}

const COMPRESSED_AT_A_TIME = 4
const COMPRESSION_LEVEL = 6
const compress = promisify(gzip)

/**
 * Writes objects as the bodies of uploads: gzipped arrays in files of their own; and samples of the same: `sample.json`,
 * one array, and `sample.json.gz`, the bodies one after the other.
 */
export class UploadWriter {
  readonly #folder: string
  readonly #options: UploadWriterOptions
  readonly #array: WriteStream
  readonly #gzipped: WriteStream
  readonly #files: string[] = []
  readonly #compressing = new Set<Promise<void>>()
  #batch: string[] = []
  #batchBytes = 0
  #objects = 0
  #jsonBytes = 0
  #gzipBytes = 0
  #sampleBytes = 0

  constructor(folder: string, options: UploadWriterOptions) {
    this.#folder = folder
    this.#options = options
    this.#array = createWriteStream(join(folder, 'sample.json'))
    this.#gzipped = createWriteStream(join(folder, 'sample.json.gz'))
  }

  async add(json: string, jsonBytes: number): Promise<void> {
    if (this.#batch.length > 0 && this.#batchBytes + jsonBytes > this.#options.batchBytes) await this.#flush()
    this.#batch.push(json)
    this.#batchBytes += jsonBytes + 1
  }

  async end(): Promise<WrittenUploads> {
    if (this.#batch.length > 0) await this.#flush()
    await Promise.all(this.#compressing)
    this.#array.end(this.#sampleBytes === 0 ? '[]' : ']')
    this.#gzipped.end()
    await Promise.all([once(this.#array, 'close'), once(this.#gzipped, 'close')])
    await writeFile(join(this.#folder, 'samples.json'), JSON.stringify({ jsonBytes: this.#sampleBytes }))
    return {
      uploadFiles: this.#files,
      uploadObjects: this.#objects,
      uploadJsonBytes: this.#jsonBytes,
      uploadGzipBytes: this.#gzipBytes,
    }
  }

  async #flush(): Promise<void> {
    const json = Buffer.from(`[${this.#batch.join(',')}]`)
    const isSampled = this.#sampleBytes + json.length <= this.#options.sampleBytesMax || this.#sampleBytes === 0
    if (isSampled) {
      this.#array.write(this.#sampleBytes === 0 ? '[' : ',')
      this.#array.write(json.subarray(1, -1))
      this.#sampleBytes += json.length
    }
    const name = `${String(this.#files.length).padStart(6, '0')}.json.gz`
    this.#files.push(name)
    this.#objects += this.#batch.length
    this.#jsonBytes += json.length
    this.#batch = []
    this.#batchBytes = 0
    const compressing = this.#compress(name, json, isSampled).finally(() => this.#compressing.delete(compressing))
    this.#compressing.add(compressing)
    if (this.#compressing.size >= COMPRESSED_AT_A_TIME) await Promise.race(this.#compressing)
  }

  async #compress(name: string, json: Uint8Array, isSampled: boolean): Promise<void> {
    const gzipped = await compress(json, { level: COMPRESSION_LEVEL })
    this.#gzipBytes += gzipped.length
    if (isSampled) this.#gzipped.write(gzipped)
    await writeFile(join(this.#folder, name), gzipped)
  }
}
