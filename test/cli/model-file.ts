import { createReadStream, createWriteStream } from 'node:fs'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { building, type BuildingOptions } from '../../bench/model/building.ts'

/** Writes a model as lines `<id> TAB <json>` and returns the id of its root, which comes last. */
export async function writeModel(path: string, options: BuildingOptions): Promise<string> {
  const file = createWriteStream(path)
  let rootId = ''
  for (const batch of building({ closure: 'root-less', ...options })) {
    if (!file.write(batch.map(({ id, json }) => `${id}\t${json}\n`).join(''))) await once(file, 'drain')
    rootId = batch.at(-1)?.id ?? rootId
  }
  file.end()
  await once(file, 'close')
  return rootId
}

/** What does not depend on the order of lines: how many there are, and the sum of the ends of their hashes. */
export async function fingerprint(
  paths: readonly string[],
  hash: (line: string) => string,
): Promise<{ readonly lines: number; readonly sum: bigint }> {
  let lines = 0
  let sum = 0n
  for (const path of paths) {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
      lines += 1
      sum += BigInt(`0x${hash(line).slice(0, 16)}`)
    }
  }
  return { lines, sum }
}
