import assert from 'node:assert/strict'
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { createClient, type Project } from '../../src/client/index.ts'
import { linesOf } from '../archive/support.ts'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'
import { buildModel } from '../support/model.ts'

const states = [0, 1, 2].map((revision) => buildModel({ objects: 300, revision, changed: revision === 0 ? 0 : 12 }))

async function upload(project: Project, state: number): Promise<void> {
  await project.upload(states[state].objects.map(({ id, json }) => ({ id, json })))
}

async function started(
  t: TestContext,
  data: string,
): Promise<{ readonly url: string; readonly stop: () => Promise<unknown> }> {
  const { line, stop } = await startServer(t, ['--data', data, '--json'])
  return { url: (JSON.parse(line) as { url: string }).url, stop: () => stop('SIGKILL') }
}

async function ok(args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await stowage(args)
  assert.equal(code, 0, stderr)
  return stdout
}

/** The rights of the tokens that backups made. All are revoked. */
async function ownTokens(data: string): Promise<readonly unknown[]> {
  const tokens = (await ok(['token', 'list', '--data', data, '--json']))
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as { subject: string; state: string; projects: unknown })
    .filter(({ subject }) => subject === 'stowage backup')
  for (const { state } of tokens) assert.equal(state, 'revoked')
  return tokens.map(({ projects }) => projects)
}

test('a live server is backed up, then incrementally, and one command restores it after its folder is lost', async (t) => {
  const data = newDataFolder(t)
  const backup = join(dirname(data), 'backup')
  const server = await started(t, data)
  const token = (await ok(['token', '--data', data, '--project', '*', '--access', 'write'])).trim()
  const client = createClient({ url: server.url, token })
  const [house, shed] = [client.project('house'), client.project('shed')]
  await upload(house, 0)
  await upload(shed, 1)
  const { id: modelId } = await house.models.create({ name: 'House' })
  await house.versions.create(modelId, { rootObjectId: states[0].rootId, message: 'first' })

  const asked = ['backup', backup, '--data', data, '--url', server.url, '--quiet', '--json']
  // Uploads go on meanwhile; what was acknowledged before the backup is in it.
  const [first] = await Promise.all([ok(asked), upload(house, 1)])
  assert.deepEqual(
    (JSON.parse(first) as { projects: { project: string }[] }).projects.map(({ project }) => project).sort(),
    ['house', 'shed'],
  )
  await upload(house, 2)
  await house.versions.create(modelId, { rootObjectId: states[2].rootId, message: 'second' })
  const versions = (await house.versions.list(modelId)).items
  const lines = await linesOf(house, states[2].rootId)
  await ok(asked)
  const archivesOf = (): readonly string[] =>
    readdirSync(join(backup, 'projects'), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith('.tar'))
  assert.equal(archivesOf().length, 3)
  await ok(asked)
  assert.equal(archivesOf().length, 3, 'a backup of what has not changed adds nothing')
  assert.deepEqual(await ownTokens(data), [{ '*': 'read' }, { '*': 'read' }, { '*': 'read' }])

  await server.stop()
  rmSync(data, { recursive: true })
  const restored = join(dirname(data), 'restored')
  await ok(['restore', backup, '--data', restored, '--storage', 'level', '--quiet'])
  assert.equal(existsSync(join(restored, 'restoring.json')), false)
  assert.match(await ok(['check', '--data', restored]), /no damage/)
  const again = await stowage(['restore', backup, '--data', restored])
  assert.match(again.stderr, /is not empty/)

  const other = await started(t, restored)
  const copy = createClient({ url: other.url, token })
  assert.deepEqual((await copy.project('house').versions.list(modelId)).items, versions)
  assert.deepEqual(await linesOf(copy.project('house'), states[2].rootId), lines)
  assert.equal((await linesOf(copy.project('shed'), states[1].rootId)).length, states[1].objects.length)

  // The restored server goes on with the same backup; a new one in its place does not.
  await upload(copy.project('shed'), 2)
  const more = await stowage(['backup', backup, '--data', restored, '--url', other.url, '--quiet'])
  assert.equal(more.code, 0, more.stderr)
  assert.match(more.stderr, /does not have the history of earlier archives .* --prune removes them: house, shed/)
  await other.stop()
  const last = join(dirname(data), 'last')
  await ok(['restore', backup, '--data', last, '--quiet'])
  await ok(['export', 'shed', '--data', last, '--output', join(dirname(data), 'shed.tar'), '--quiet'])
  const replacement = await started(t, data)
  const empty = await stowage(['backup', backup, '--data', data, '--url', replacement.url, '--quiet'])
  assert.equal(empty.code, 1)
  assert.match(empty.stderr, /is the backup of another storage/)
  assert.equal((await ownTokens(data)).length, 1, 'the token of a backup that fails is revoked, too')
})

test('a folder that was put back is backed up in full', async (t) => {
  const data = newDataFolder(t)
  const [backup, cold, restored] = ['backup', 'cold', 'restored'].map((name) => join(dirname(data), name))
  const asked = ['backup', backup, '--data', data, '--quiet']
  const write = async (state: number): Promise<void> => {
    const { url, stop } = await started(t, data)
    const token = (await ok(['token', '--data', data, '--project', '*', '--access', 'write'])).trim()
    await upload(createClient({ url, token }).project('house'), state)
    await stop()
  }
  await write(0)
  cpSync(data, cold, { recursive: true })
  await write(1)
  await ok(asked)
  rmSync(data, { recursive: true })
  cpSync(cold, data, { recursive: true })
  await write(2)
  await ok(asked)
  await ok(['restore', backup, '--data', restored, '--quiet'])
  const { url } = await started(t, restored)
  const token = (await ok(['token', '--data', restored, '--project', '*', '--access', 'read'])).trim()
  const house = createClient({ url, token }).project('house')
  assert.equal((await linesOf(house, states[2].rootId)).length, states[2].objects.length)
})

test('neither a restore nor a copy goes into memory, which would be lost when the command ends', async (t) => {
  const data = newDataFolder(t)
  const backup = join(dirname(data), 'backup')
  await started(t, data).then(({ stop }) => stop())
  await ok(['backup', backup, '--data', data, '--quiet'])
  const target = join(dirname(data), 'target')
  for (const args of [
    ['restore', backup, '--data', target],
    ['copy', '--from', data, '--to', target],
  ]) {
    const { code, stderr } = await stowage([...args, '--storage', 'memory'])
    assert.equal(code, 2, stderr)
    assert.match(stderr, /argument 'memory' is invalid\. Allowed choices are filesystem, level\./)
  }
  assert.equal(existsSync(target), false)
})
