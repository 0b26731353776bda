import { writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { namelessFile } from './nameless-file.ts'

/** Items that were read once, to be read again later. They lie in a file, so that memory stays bounded. */
export interface TemporaryCopy<T> {
  items(): AsyncIterable<T>
  remove(): Promise<void>
}

/** Reads everything at once. JSON values only. */
export async function temporaryCopy<T>(items: AsyncIterable<T>, signal?: AbortSignal): Promise<TemporaryCopy<T>> {
  const file = await namelessFile()
  try {
    await writeFile(file, lines(items), { signal })
  } catch (error) {
    await file.close()
    throw error
  }
  return {
    items: async function* () {
      const input = file.createReadStream({ start: 0, autoClose: false })
      for await (const line of createInterface({ input, crlfDelay: Infinity })) yield JSON.parse(line) as T
    },
    remove: () => file.close(),
  }
}

/** What is written at once. */
const PIECE_CHARACTERS = 65_536
/** Characters that readers of lines take for the end of one, and JSON does not escape. */
const LINE_ENDS = /[\u2028\u2029]/g

/** A line for each item, many of them in one text. */
async function* lines(items: AsyncIterable<unknown>): AsyncGenerator<string> {
  let text = ''
  for await (const item of items) {
    const json = JSON.stringify(item)
    text += `${json.replace(LINE_ENDS, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}\n`
    if (text.length < PIECE_CHARACTERS) continue
    yield text
    text = ''
  }
  yield text
}
