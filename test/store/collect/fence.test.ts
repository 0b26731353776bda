import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoryBackend } from '../../../adapters/memory/index.ts'
import { KeyedMutex } from '../../../src/async/keyed-mutex.ts'
import { REAL_ENVIRONMENT } from '../../../src/environment.ts'
import { Fence, type FenceParts, LayoutChangedError } from '../../../src/store/collect/fence.ts'
import { epochKey } from '../../../src/store/records/keys.ts'
import type { ProjectView } from '../../../src/store/records/project-view.ts'
import { readHead, viewProject } from '../../../src/store/records/projects.ts'
import { encodeHead } from '../../../src/store/records/records.ts'
import { turns } from '../../support/patience.ts'
import type { RecordStore } from '../../../src/storage/backend.ts'
import { put } from '../support.ts'
import { node, openCollecting, PROJECT } from './collecting.ts'

const NOTHING = { put: [], expect: [] }

interface Fences {
  readonly parts: FenceParts
  readonly project: ProjectView
  readonly begin: (isDryRun?: boolean) => Promise<Fence>
}

async function fences(): Promise<Fences> {
  const backend = memoryBackend()
  const { store } = await openCollecting(1, backend)
  await put(store, PROJECT, [node('root')])
  const expectation = { key: epochKey(), value: (await backend.records.getMany([epochKey()]))[0] }
  const parts: FenceParts = {
    records: backend.records,
    environment: REAL_ENVIRONMENT,
    epochs: { epochMs: 1_000, current: () => Promise.resolve({ number: 0, expectation }) },
    turns: new KeyedMutex(),
  }
  const project = await viewProject(backend.records, PROJECT)
  assert.ok(project)
  return {
    parts,
    project,
    begin: (isDryRun = false) => (isDryRun ? Fence.ofDryRun(parts, project) : Fence.of(parts, project)),
  }
}

test('of two collections of a project, the later one continues', async () => {
  const { begin } = await fences()
  const [first, last] = [await begin(), await begin()]
  await assert.rejects(first.raiseLayout(NOTHING), LayoutChangedError)
  await assert.rejects(first.renew(), LayoutChangedError)
  assert.equal(await last.raiseLayout(NOTHING), true)
})

test('a dry run does not end a running collection', async () => {
  const { begin } = await fences()
  const first = await begin()
  await begin(true)
  assert.equal(await first.raiseLayout(NOTHING), true)
})

test('a collection begins while uploads of the same process change the head without a pause', async () => {
  const { parts, project } = await fences()
  const { records } = parts
  const uploads: Promise<unknown>[] = []
  const upload = async (): Promise<void> => {
    const { key, bytes, head } = await readHead(records, PROJECT)
    assert.ok(head)
    const value = encodeHead(key, { ...head, sequence: head.sequence + 1 })
    await records.commit({ put: [{ key, value }], expect: [{ key, value: bytes }] })
  }
  const crowded: RecordStore = {
    limits: records.limits,
    getMany: async (...given) => {
      const found = await records.getMany(...given)
      uploads.push(parts.turns.run(PROJECT, upload))
      await turns()
      return found
    },
    range: (...given) => records.range(...given),
    insertMany: (...given) => records.insertMany(...given),
    commit: (...given) => records.commit(...given),
    close: () => records.close(),
  }
  const fence = await Fence.of({ ...parts, records: crowded }, project)
  await Promise.all(uploads)
  assert.equal(await fence.renew(), true)
})
