import { execFile } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { rename, stat } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { request as requestTls } from 'node:https'
import { once } from 'node:events'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import type { Exchange } from '../load/job.ts'
import type { FileServer } from '../nginx.ts'
import type { TestedServer } from './tested-server.ts'

const run = promisify(execFile)

/** An answer in a file, and where nginx serves it. */
export interface AnswerFile {
  readonly path: string
  readonly bytes: number
  /** The job's origin and path for the same bytes from nginx; `undefined` without nginx. */
  readonly reference: { readonly origin: string; readonly path: string } | undefined
}

export interface AnswerFilesOptions {
  readonly server: TestedServer
  readonly nginx: FileServer | undefined
  readonly scratch: string
}

/** Saves answers to compare them and to let nginx serve the same bytes. */
export class AnswerFiles {
  readonly #options: AnswerFilesOptions
  #count = 0

  constructor(options: AnswerFilesOptions) {
    this.#options = options
  }

  async save({ method, path, headers = {}, body }: Exchange): Promise<AnswerFile> {
    const { server, nginx, scratch } = this.#options
    this.#count += 1
    const name = `answer-${this.#count}`
    const file = join(nginx?.folder ?? scratch, name)
    const url = new URL(`${server.origin}${path}`)
    const sent = (url.protocol === 'https:' ? requestTls : request)(url, { method, headers })
    sent.end(body)
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`${path} was answered with status ${response.statusCode}`)
    await pipeline(response, createWriteStream(`${file}.part`))
    await rename(`${file}.part`, file)
    const { size: bytes } = await stat(file)
    return { path: file, bytes, reference: nginx === undefined ? undefined : { origin: nginx.url, path: `/${name}` } }
  }
}

/** Counts the lines of an answer and their bytes with programs of their own, so that nothing of Stowage judges itself. */
export async function countLines(file: string, gzipped: boolean): Promise<{ lines: number; bytes: number }> {
  const { stdout } = await run('sh', ['-c', `${gzipped ? 'gzip -dc' : 'cat'} "$0" | wc -l -c`, file])
  const [lines, bytes] = stdout.trim().split(/\s+/).map(Number)
  return { lines, bytes }
}
