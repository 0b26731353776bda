import { existsSync } from 'node:fs'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { ElementSplitter } from '../../src/decode/splitter.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { readyBlocks } from '../upload.ts'

/** The uploads of a version as ready blocks, in files beside them; made when they are first asked for. */
export async function blockFiles(uploadFiles: readonly string[]): Promise<readonly string[]> {
  const files: string[] = []
  for (const uploadFile of uploadFiles) {
    const file = `${uploadFile.replace(/\.json\.gz$/, '')}.blocks`
    if (!existsSync(file)) {
      await writeFile(`${file}.unfinished`, await readyBlocks(textsOf(gunzipSync(await readFile(uploadFile)))))
      await rename(`${file}.unfinished`, file)
    }
    files.push(file)
  }
  return files
}

function textsOf(array: Uint8Array): { readonly id: string; readonly json: string }[] {
  const splitter = new ElementSplitter({ part: 0, limits: DEFAULT_LIMITS, tally: { objects: 0 } })
  const texts: { readonly id: string; readonly json: string }[] = []
  for (let elements = splitter.push(array); ; elements = splitter.more()) {
    for (const { bytes } of elements) {
      const json = Buffer.from(bytes).toString('utf8')
      texts.push({ id: (JSON.parse(json) as { readonly id: string }).id, json })
    }
    if (!splitter.hasMore) return texts
  }
}
