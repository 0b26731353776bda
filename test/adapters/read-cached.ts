import { cachedBlobs } from '../../adapters/cache/index.ts'
import { filesystemBlobs } from '../../adapters/filesystem/index.ts'
import { MB } from '../../src/limits.ts'

/** Reads one blob through the cache, in ranges that the seed chooses, until it is killed. Says so after each. */
const { source, path, name, sizeBytes, seed } = JSON.parse(process.argv[2]) as {
  readonly source: string
  readonly path: string
  readonly name: string
  readonly sizeBytes: number
  readonly seed: number
}
const blobs = cachedBlobs(filesystemBlobs({ path: source }), { path, sizeBytesMax: 64 * MB })
for (let step = seed + 1; ; step++) {
  const start = (step * 7_919_237) % sizeBytes
  await blobs.read(name, start, Math.min(sizeBytes, start + 1 + ((step * 104_729) % (4 * MB))))
  process.send?.('read')
}
