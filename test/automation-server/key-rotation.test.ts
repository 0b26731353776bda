import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { secretKeyRing } from '../../src/automation-server/secret-keys.ts'
import { type SecretKey, storedSecretKeys } from '../../src/automation-server/index.ts'
import { heldKeys, rotateKey } from '../../src/credentials/key-ring.ts'
import { eventually } from '../support/patience.ts'
import { automated, definition, type Fixture, heldRun, reporting, withVersion } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

const SWEEP = { sweepIntervalMs: 5 }

/** Every sealed text in the storage, by the id of its key. */
async function sealedBy({ backend }: Fixture): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>()
  for await (const entries of backend.records.range({ gte: new Uint8Array([0]), lt: new Uint8Array([0xff]) }))
    for (const { value } of entries)
      for (const [, id] of Buffer.from(value)
        .toString('latin1')
        .matchAll(/"apiKey":"([\w-]+)\.[\w-]+\.[\w-]+\.[\w-]+"/g))
        counts.set(id, (counts.get(id) ?? 0) + 1)
  return counts
}

test('a running service accepts a new key and reseals all secrets with it', async (t) => {
  const [first, second] = [1, 2].map((fill): SecretKey => ({ id: `k${fill}`, key: new Uint8Array(32).fill(fill) }))
  let keys: readonly SecretKey[] = [first]
  const released: (readonly string[])[] = []
  const { executor, starting } = heldRun()
  const fixture = automated(t, {
    ...SWEEP,
    secretKeys: { read: async () => keys, release: async (ids) => void released.push(ids) },
    functions: [definition(executor)],
  })
  const { modelId } = await withVersion(fixture)
  const project = fixture.extension.project('p')
  const { id } = await project.automations.create({
    name: 'Check',
    functionId: 'checker',
    modelId,
    inputs: { apiKey: 'hush' },
    trigger: 'manual',
  })
  await project.runs.start(id)
  await starting
  assert.deepEqual([...(await sealedBy(fixture))], [['k1', 2]], 'the automation and its run')
  keys = [second, first]
  await eventually(async () => (await sealedBy(fixture)).get('k2') === 2, 'both are sealed anew')
  await eventually(async () => released.length > 0, 'the older key is let go')
  assert.deepEqual(released[0], ['k1'])
  assert.deepEqual([...(await sealedBy(fixture)).keys()], ['k2'])

  keys = [second]
  const again = automated(t, {
    ...SWEEP,
    backend: { ...fixture.backend },
    secretKeys: keys,
    functions: [definition(reporting({ status: 'succeeded' }))],
  })
  const changed = await again.extension
    .project('p')
    .automations.change(id, { inputs: { apiKey: '******', tolerance: 3 } })
  assert.deepEqual(changed.inputs, { apiKey: '******', tolerance: 3 }, 'the secret opens with the new key alone')
})

test('an expired key is removed from the folder once it seals nothing', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'stowage-secret-keys-'))
  const ring = secretKeyRing(folderCredentials(folder))
  const fixture = automated(t, {
    ...SWEEP,
    secretKeys: storedSecretKeys(folderCredentials(folder)),
    functions: [definition(reporting({ status: 'succeeded' }))],
  })
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { modelId } = await withVersion(fixture)
  const secretOf = async (): Promise<unknown> =>
    fixture.extension
      .project('p')
      .automations.create({ name: 'A', functionId: 'checker', modelId, inputs: { apiKey: 'hush' }, trigger: 'manual' })
  await secretOf()
  const [first] = await heldKeys(ring)
  const [second] = await rotateKey(ring, new Date(Date.now() + 3_600_000).toISOString())
  await eventually(async () => (await sealedBy(fixture)).get(second.id) === 1, 'it is sealed anew')
  await secretOf()
  assert.deepEqual([...(await sealedBy(fixture))], [[second.id, 2]])
  assert.ok(
    (await heldKeys(ring)).some(({ id }) => id === first.id),
    'it has not ended',
  )
  const [third] = await rotateKey(ring, new Date().toISOString())
  await eventually(async () => (await heldKeys(ring)).length === 1, 'the ended ones are removed')
  assert.deepEqual([...(await sealedBy(fixture))], [[third.id, 2]], 'not before everything was sealed anew')
  assert.deepEqual((await readdir(join(folder, 'access'))).sort(), ['secrets-key.3'])
})

test('lost keys of a folder are not replaced while the service runs', async (t) => {
  const folder = temporaryFolder(t)
  const source = storedSecretKeys(folderCredentials(folder))
  assert.equal((await source.read()).length, 1)
  await rm(join(folder, 'access/secrets-key'))
  await assert.rejects(async () => source.read(), {
    code: 'corrupt_data',
    message: /secrets-key.* is gone.*Restore it/,
  })
})
