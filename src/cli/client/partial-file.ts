import { createReadStream } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import type { DownloadJournal, PartialDownload } from '../../client/index.ts'

const LF = 0x0a
const HEAD_BYTES_MAX = 65_536

/**
 * The compressed bytes of an incomplete download, in a file that starts with one line of JSON: `{"download", "etag"}`.
 * `download` names the request; a file of another request does not count.
 */
export class PartialFile implements DownloadJournal {
  readonly #path: string
  readonly #download: string
  #handle: FileHandle | undefined
  /** Bytes of the first line. */
  #headBytes = 0

  constructor(path: string, download: string) {
    this.#path = path
    this.#download = download
  }

  async load(): Promise<PartialDownload | undefined> {
    const handle = await this.#existing()
    if (handle === undefined) return undefined
    const head = Buffer.alloc(HEAD_BYTES_MAX)
    const { bytesRead } = await handle.read(head, 0, HEAD_BYTES_MAX, 0)
    const end = head.subarray(0, bytesRead).indexOf(LF)
    const { download, etag } = end === -1 ? {} : parsedHead(head.toString('utf8', 0, end))
    if (download !== this.#download || etag === undefined) return undefined
    const start = (this.#headBytes = end + 1)
    const { size } = await handle.stat()
    return {
      etag,
      bytes: size - start,
      read: (count) => createReadStream(this.#path, { start, end: start + count - 1 }),
    }
  }

  async begin(etag: string): Promise<void> {
    await this.#handle?.close()
    this.#handle = await open(this.#path, 'w+')
    const head = Buffer.from(`${JSON.stringify({ download: this.#download, etag })}\n`)
    await this.#handle.write(head, 0, head.length, 0)
    this.#headBytes = head.length
  }

  async write(at: number, bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await (this.#handle as FileHandle).write(
        bytes,
        done,
        bytes.length - done,
        this.#headBytes + at + done,
      )
      done += bytesWritten
    }
  }

  /** Closes the file and, unless a later call may continue it, removes it. */
  async close({ keep }: { readonly keep: boolean }): Promise<void> {
    await this.#handle?.close()
    this.#handle = undefined
    if (!keep) await rm(this.#path, { force: true })
  }

  async #existing(): Promise<FileHandle | undefined> {
    try {
      this.#handle = await open(this.#path, 'r+')
      return this.#handle
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }
}

function parsedHead(line: string): { readonly download?: string; readonly etag?: string } {
  try {
    return JSON.parse(line) as { download?: string; etag?: string }
  } catch {
    return {}
  }
}
