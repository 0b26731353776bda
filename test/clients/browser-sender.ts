import assert from 'node:assert/strict'
import type { ModelObject } from '../../bench/model/building.ts'
import type { Target } from '../../bench/upload.ts'
import { jsonArray } from '../support/model.ts'

const BATCH_BYTES = 200_000

/**
 * What the object sender of the existing service's web pages does: one part named `object-batch` a request, one request
 * at a time, and 201 or it fails.
 */
export async function sendFromBrowser(
  { url, token, projectId }: Target,
  objects: readonly ModelObject[],
): Promise<number> {
  let requests = 0
  const send = async (batch: readonly ModelObject[]): Promise<void> => {
    const form = new FormData()
    form.append('object-batch', new Blob([jsonArray(batch)], { type: 'application/json' }))
    const answer = await fetch(`${url}/objects/${projectId}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: form,
    })
    assert.equal(answer.status, 201, await answer.text())
    requests += 1
  }
  let batch: ModelObject[] = []
  let bytes = 0
  for (const object of objects) {
    batch.push(object)
    bytes += object.json.length
    if (bytes < BATCH_BYTES) continue
    await send(batch)
    batch = []
    bytes = 0
  }
  await send(batch)
  return requests
}
