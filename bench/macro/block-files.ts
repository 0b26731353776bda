import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import type { ObjectText } from '../../src/client/index.ts'
import { BATCH_BYTES as CLIENT_BATCH_BYTES } from '../../src/client/upload/upload-batches.ts'
import { ElementSplitter } from '../../src/decode/splitter.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { BATCH_BYTES } from './dataset.ts'
import { readyBlocks } from '../upload.ts'

/** As much JSON in one request as the client sends. */
const FILES_IN_ONE = Math.floor(CLIENT_BATCH_BYTES / BATCH_BYTES)

/**
 * The uploads of a version as ready blocks, in files beside them; made when they are first asked for. Each has the
 * objects of several uploads.
 */
export async function blockFiles(uploadFiles: readonly string[]): Promise<readonly string[]> {
  const files: string[] = []
  for (let first = 0; first < uploadFiles.length; first += FILES_IN_ONE) {
    const from = uploadFiles.slice(first, first + FILES_IN_ONE)
    const file = `${from[0].replace(/\.json\.gz$/, '')}-${from.length}.blocks`
    if (!existsSync(file)) {
      const texts: ObjectText[] = []
      for (const uploadFile of from) texts.push(...textsOf(gunzipSync(await readFile(uploadFile))))
      await writeFile(`${file}.unfinished`, await readyBlocks(texts))
      await rename(`${file}.unfinished`, file)
    }
    files.push(file)
  }
  return files
}

function textsOf(array: Uint8Array): ObjectText[] {
  const splitter = new ElementSplitter({ part: 0, limits: DEFAULT_LIMITS, tally: { objects: 0 } })
  const texts: ObjectText[] = []
  for (let elements = splitter.push(array); ; elements = splitter.more()) {
    for (const { bytes } of elements) {
      const json = Buffer.from(bytes).toString('utf8')
      texts.push({ id: (JSON.parse(json) as { readonly id: string }).id, json })
    }
    if (!splitter.hasMore) return texts
  }
}
