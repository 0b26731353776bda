import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { measureWay } from '../../bench/id-index/measure-way.ts'
import { RecordIndex } from '../../bench/id-index/record-index.ts'
import { SegmentIndex } from '../../bench/id-index/segment-index.ts'
import { temporaryFolder } from '../support/folder.ts'

const OBJECTS = 40_000
const LOOKUPS = 5_000
/** So that the sort has 40 parts in the largest of the segments. */
const PARTITION_BYTES = 8_192

for (const areFiltersInMemory of [true, false])
  test(`segments find every object and no other one, filters ${areFiltersInMemory ? 'in memory' : 'in the file'}`, async (t) => {
    const options = { segments: 4, areFiltersInMemory, partitionBytes: PARTITION_BYTES }
    const index = new SegmentIndex(temporaryFolder(t), options)
    // It throws when an object is found elsewhere than in its place, or not at all.
    const { bytesPerObject } = await measureWay(index, OBJECTS, LOOKUPS)
    await index.close()
    assert.ok(
      bytesPerObject > 17 && bytesPerObject < 18,
      `an entry, 10 bits of filter and the fence: ${bytesPerObject}`,
    )
  })

test('records find every object and no other one', async () => {
  const index = new RecordIndex(memoryBackend().records, async () => 0)
  await measureWay(index, OBJECTS, LOOKUPS)
  await index.close()
})
