import assert from 'node:assert/strict'
import { test } from 'node:test'
import { objectStoreConformance } from '../../src/storage/conformance/index.ts'
import type { ObjectStore } from '../../src/store/plain/object-store.ts'

function mapStore(isOverwriting = false): ObjectStore {
  const projects = new Map<string, Map<string, Uint8Array>>()
  const objectsOf = (project: string): Map<string, Uint8Array> => {
    const objects = projects.get(project) ?? new Map<string, Uint8Array>()
    projects.set(project, objects)
    return objects
  }
  return {
    put: async (project, batches) => {
      const arrived = []
      for await (const batch of batches)
        arrived.push(...batch.map(({ id, json }) => [id, Uint8Array.from(json)] as const))
      const objects = objectsOf(project)
      const inserted = arrived.filter(([id]) => !objects.has(id))
      for (const [id, json] of isOverwriting ? arrived : inserted) objects.set(id, json)
      return { inserted: inserted.length }
    },
    has: async (project, ids) => ids.map((id) => objectsOf(project).has(id)),
    get: async function* (project, ids) {
      yield ids.flatMap((id) => {
        const json = objectsOf(project).get(id)
        return json ? [{ id, json }] : []
      })
    },
  }
}

for (const { name, run } of objectStoreConformance(() => mapStore())) test(name, run)

test('a store that overwrites fails in the case that says so', async () => {
  const found = objectStoreConformance(() => mapStore(true)).find(({ name }) =>
    name.startsWith('put: keeps the first text'),
  )
  await assert.rejects(async () => found?.run(), /the text that is held[^]*"?first|put\(/)
})
