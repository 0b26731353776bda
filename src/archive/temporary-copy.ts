import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Items that were read once, to be read again later. They lie in a file, so that memory stays bounded. */
export interface TemporaryCopy<T> {
  items(): AsyncIterable<T>
  remove(): Promise<void>
}

/** Reads everything at once. JSON values only. */
export async function temporaryCopy<T>(items: AsyncIterable<T>, signal?: AbortSignal): Promise<TemporaryCopy<T>> {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-'))
  const path = join(folder, 'items')
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    await pipeline(Readable.from(lines(items)), createWriteStream(path, { mode: 0o600 }), { signal })
  } catch (error) {
    await remove()
    throw error
  }
  return {
    items: async function* () {
      for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity }))
        yield JSON.parse(line) as T
    },
    remove,
  }
}

/** Characters that readers of lines take for the end of one, and JSON does not escape. */
const LINE_ENDS = /[\u2028\u2029]/g

async function* lines(items: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const item of items) {
    const json = JSON.stringify(item)
    yield `${json.replace(LINE_ENDS, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}\n`
  }
}
