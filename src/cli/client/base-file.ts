import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import type { ObjectTexts } from '../../client/index.ts'
import { StowageError } from '../../errors.ts'
import { ContentDigest } from '../../object/content-digest.ts'
import { quotedPath } from '../../object/id.ts'
import { IdSet } from '../../object/id-set.ts'

const READ_BYTES = 262_144
const TAB = 0x09
const LF = 0x0a
const TAB_AND_LF_BYTES = 2
/** No id is as long, so a line without a TAB up to here is none. */
const HEAD_BYTES_MAX = 4_096

/**
 * The objects of a file of lines `<id> TAB <json>`, for look-ups by id. The file is read once for that; about 60 bytes
 * of memory for each object hold its place.
 */
export class BaseFile implements ObjectTexts, AsyncDisposable {
  readonly #handle: FileHandle
  readonly #ids = new IdSet()
  /** The start of each object's text, and its length in bytes. */
  readonly #starts: number[] = []
  readonly #lengths: number[] = []
  readonly #contents = new ContentDigest()

  private constructor(handle: FileHandle) {
    this.#handle = handle
  }

  /** Throws `invalid_request` for a file that is not there, or not such a file. */
  static async open(path: string, signal: AbortSignal): Promise<BaseFile> {
    const handle = await open(path).catch((cause: unknown) => {
      throw new StowageError('invalid_request', `${quotedPath(path)} cannot be opened: ${(cause as Error).message}`, {
        cause,
      })
    })
    if (!(await handle.stat()).isFile()) {
      await handle.close()
      throw new StowageError(
        'invalid_request',
        `${quotedPath(path)} is not a file; a base must be a file, because it is read in any order`,
      )
    }
    const file = new BaseFile(handle)
    try {
      await file.#index(path, signal)
      return file
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /**
   * What the file holds as `have` takes it, `<id>@<closure>`, if its first object is a root and the others are everything
   * below it; `undefined` for an empty file.
   */
  get have(): string | undefined {
    if (this.#ids.size === 0) return undefined
    return `${Buffer.from(this.#ids.bytesAt(0)).toString('utf8')}@${this.#contents.digest()}`
  }

  getMany(ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    return Promise.all(ids.map((id) => this.#textOf(id)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }

  async #textOf(id: string): Promise<string | undefined> {
    const at = this.#ids.find(Buffer.from(id))
    if (at === -1) return undefined
    const bytes = Buffer.alloc(this.#lengths[at])
    const { bytesRead } = await this.#handle.read(bytes, 0, bytes.length, this.#starts[at])
    return bytesRead === bytes.length ? bytes.toString('utf8') : undefined
  }

  async #index(path: string, signal: AbortSignal): Promise<void> {
    let offset = 0
    let head: Buffer = Buffer.alloc(0)
    /** The start of the text of the current line, -1 while its id is read. */
    let textStart = -1
    let textCrc32 = 0
    for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES, signal }) as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length;) {
        const end = chunk.indexOf(textStart === -1 ? TAB : LF, at)
        const stop = end === -1 ? chunk.length : end
        if (textStart === -1) head = Buffer.concat([head, chunk.subarray(at, Math.min(stop, at + HEAD_BYTES_MAX))])
        else textCrc32 = crc32(chunk.subarray(at, stop), textCrc32)
        if (head.length >= HEAD_BYTES_MAX || head.includes(LF)) throw notLines(path)
        at = stop + 1
        if (end === -1) continue
        if (textStart === -1) textStart = offset + end + 1
        else {
          this.#add(head, textStart, offset + end, textCrc32)
          head = Buffer.alloc(0)
          textStart = -1
          textCrc32 = 0
        }
      }
      offset += chunk.length
    }
    if (textStart !== -1) this.#add(head, textStart, offset, textCrc32)
    else if (head.length > 0) throw notLines(path)
  }

  #add(id: Buffer, start: number, end: number, textCrc32: number): void {
    const { size } = this.#ids
    if (this.#ids.add(id) < size) return
    this.#starts.push(start)
    this.#lengths.push(end - start)
    this.#contents.add(id.length + end - start + TAB_AND_LF_BYTES, textCrc32)
  }
}

function notLines(path: string): StowageError {
  return new StowageError(
    'invalid_request',
    `${quotedPath(path)} is not a file of lines "<id> TAB <json>", as "stowage download" writes them; a base must be one, not compressed`,
  )
}
