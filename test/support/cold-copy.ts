import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'

/** A storage in memory with everything that another one holds: as if its folder had been copied while no server ran. */
export async function coldCopy({ records, blobs }: StorageBackend): Promise<StorageBackend> {
  const copy = memoryBackend()
  for await (const entries of records.range({ gte: new Uint8Array(), lt: Uint8Array.of(0xff) }))
    await copy.records.insertMany(entries)
  for await (const listed of blobs.list(''))
    for (const { name, sizeBytes } of listed) {
      const content = await blobs.read(name, 0, sizeBytes)
      await copy.blobs.put(
        name,
        (async function* () {
          yield content
        })(),
      )
    }
  return copy
}
