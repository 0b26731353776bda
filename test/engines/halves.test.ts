import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { serverLineOf } from '../../bench/server-process.ts'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'
import { writeModel } from '../cli/model-file.ts'
import { temporaryFolder } from '../support/folder.ts'
import { startStorage } from './cluster.ts'
import { s3TestClient } from './s3-engine.ts'

/* Halves that are mixed: records in a folder with blobs in S3, records in PostgreSQL with blobs in a folder. */

/** So many that they lie in a pack of their own, and not inside its record. */
const OBJECTS = 1_000

const storage = await startStorage({ after })
const { s3, env } = storage
const [, postgres, , inS3] = storage.place

interface Kept {
  readonly root: string
  readonly model: string
}

/** A server over the halves takes a model and gives it back, also after a restart. Then `check` finds nothing. */
async function keepModel(t: TestContext, place: readonly string[]): Promise<Kept> {
  const data = newDataFolder(t)
  const folder = temporaryFolder(t)
  const model = join(folder, 'model.txt')
  const root = await writeModel(model, { objects: OBJECTS })
  const issued = await stowage(['token', '--data', data, ...place, '--project', 'house', '--access', 'write'], env)
  const settings = { ...env, STOWAGE_TOKEN: issued.stdout.trim() }
  for (const command of [
    ['upload', model],
    ['download', root, '-o', join(folder, 'copy.txt')],
  ]) {
    const { line, stop } = await startServer(t, ['--data', data, ...place, '--json'], env)
    const { url = '' } = serverLineOf(line) ?? {}
    const done = await stowage([...command, '--url', url, '--project', 'house', '--quiet'], settings)
    assert.equal(done.code, 0, done.stderr)
    assert.equal((await stop()).code, 0)
  }
  const [sent, received] = await Promise.all([model, join(folder, 'copy.txt')].map((path) => readFile(path, 'utf8')))
  assert.deepEqual(received.split('\n').sort(), sent.split('\n').sort())
  const checked = await stowage(['check', '--data', data, ...place], env)
  assert.deepEqual([checked.code, checked.stdout], [0, 'no damage (0 notes)\n'], checked.stderr)
  return { root, model }
}

test('records in LevelDB and blobs in S3 are one storage', async (t) => {
  const records = join(temporaryFolder(t), 'records')
  await keepModel(t, ['--records', `level:${records}`, '--blobs', inS3])

  await t.test('another prefix is refused, and nothing is put there', async () => {
    const elsewhere = inS3.replace('/models?', '/elsewhere?')
    const refused = await stowage(['check', '--records', `level:${records}`, '--blobs', elsewhere], env)
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /do not belong together.*nothing was changed/)
    const client = s3TestClient(s3.options)
    t.after(() => client.close())
    const { body } = await client.send({ method: 'GET', query: { 'list-type': '2', prefix: 'elsewhere/' } })
    assert.doesNotMatch(Buffer.from(body).toString(), /<Key>/)
  })
})

test('records in PostgreSQL and blobs in a folder are one storage, which copies itself into a folder', async (t) => {
  const blobs = join(temporaryFolder(t), 'blobs')
  const place = ['--records', `${postgres}_files`, '--blobs', `file:${blobs}`]
  const { root, model } = await keepModel(t, place)
  const folder = join(temporaryFolder(t), 'copy')
  const from = ['--from-records', place[1], '--from-blobs', place[3]]
  const copied = await stowage(['copy', ...from, '--to', folder, '--drain', '2s'], env)
  assert.equal(copied.code, 0, copied.stderr)
  assert.match(copied.stderr, /^stowage: waiting 3 s for calls of servers to the source to end\n/)
  const back = join(folder, '..', 'back.txt')
  const down = await stowage(['download', root, '--data', folder, '--project', 'house', '-o', back, '--quiet'])
  assert.equal(down.code, 0, down.stderr)
  const texts = await Promise.all([model, back].map(async (path) => (await readFile(path, 'utf8')).split('\n').sort()))
  assert.deepEqual(texts[1], texts[0])
})
