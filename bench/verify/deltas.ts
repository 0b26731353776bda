import assert from 'node:assert/strict'
import { gunzipSync } from 'node:zlib'
import { createClient } from '../../src/client/index.ts'
import { applyDelta, parseDelta } from '../../src/delta/delta.ts'
import type { ModelObject } from '../model/building.ts'
import type { Target } from '../upload.ts'
import { type Ask, assertSame, type SentModel } from './downloads.ts'
import { sentModel } from './versions.ts'

const OBJECT_BYTES_MAX = 10_485_760

/** The cost of a newer version, as parts of the whole older one. */
export interface DeltaShares {
  readonly up: number
  readonly down: number
}

/**
 * Sends a newer version as deltas on the older one, and fetches it as deltas; throws if the result differs from the
 * upload. `newer[i]` is the later form of `older[i]`.
 */
export async function verifyDeltas(
  ask: Ask,
  { url, token, projectId }: Target,
  older: readonly ModelObject[],
  newer: readonly ModelObject[],
  olderWireBytes: number,
): Promise<DeltaShares> {
  const had = sentModel(older)
  const { rootId } = sentModel(newer)
  const project = createClient({ url, token }).project(projectId)
  const uploaded = await project.upload(
    newer.map(({ id, json }, at) => ({ id, json, base: { id: older[at].id, json: older[at].json } })),
  )
  const path = `/objects/${projectId}/${rootId}`
  const whole = await ask(`${path}?archive=gzip`)
  const digest = (await ask(`/objects/${projectId}/${had.rootId}?archive=gzip`)).headers.get('stowage-closure')
  const changed = await ask(`${path}?have=${had.rootId}@${digest}&delta&archive=gzip`)
  assert.equal(changed.headers.get('stowage-have'), `${had.rootId};subtracted`)
  assertSame(
    undone(gunzipSync(changed.bytes).toString(), had),
    new Map(newer.filter(({ id }) => !had.texts.has(id)).map(({ id, json }) => [id, json])),
    'the version as deltas',
  )
  return { up: uploaded.wireBytes / olderWireBytes, down: changed.bytes.length / whole.bytes.length }
}

function undone(lines: string, had: SentModel): Map<string, string> {
  const texts = new Map<string, string>()
  for (const line of lines.split('\n').slice(0, -1)) {
    const [id, text] = line.split('\t')
    const delta = text.startsWith('[') ? parseDelta(text) : undefined
    texts.set(
      id,
      delta === undefined
        ? text
        : Buffer.from(applyDelta(delta, Buffer.from(had.texts.get(delta.baseId) ?? ''), OBJECT_BYTES_MAX)).toString(),
    )
  }
  return texts
}
