import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { after, before, suite, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { RunStatus } from '../../src/automation/index.ts'
import type { Page, Run } from '../../src/automation-server/index.ts'
import { eventually } from '../support/patience.ts'
import { type AutomationServer, automationServer, isAlive } from './automation-server.ts'
import { temporaryFolder } from '../support/folder.ts'

const KEY = 'swordfish/mauve+ü'

/** Pids that a function tells as its progress, as "pids 1 2". */
const pidsOf = (text: string | null | undefined): number[] => (text ?? '').match(/\d+/g)?.map(Number) ?? []

suite('runs of both executors on a server', { concurrency: 3 }, () => {
  let server: AutomationServer
  const closers: (() => void | Promise<void>)[] = []
  before(async () => {
    const until = { after: (work: () => void | Promise<void>) => void closers.unshift(work) }
    server = await automationServer(until, { folder: temporaryFolder(until), concurrency: 4, isolation: 'off' })
  })
  after(async () => {
    for (const close of closers) await close()
  })

  for (const functionId of ['here', 'there']) {
    for (const [what, status, message] of [
      ['succeed', 'succeeded', /^all is well$/],
      ['fail', 'failed', /^a rule is broken$/],
      ['throw', 'exception', /^thrown by the function$/],
      ['timer', 'exception', /^thrown in a timer$/],
      ['rejection', 'exception', /^rejected, and nobody listens$/],
      ['mark-twice', 'exception', /already marked as succeeded/],
      ['mark-never', 'exception', /returned without a mark/],
    ] as const satisfies readonly (readonly [string, RunStatus, RegExp])[]) {
      test(`${functionId}, ${what}: ${status}`, async () => {
        const id = await server.start(functionId, { what })
        const run = await server.ended(id)
        assert.equal(run.status, status, run.message ?? '')
        assert.match(run.message ?? '', message)
        assert.equal(run.annotations.INFO, 1)
      })
    }

    for (const what of ['obey', 'ignore']) {
      test(`${functionId}: a run is canceled while the function would ${what}`, async () => {
        const id = await server.start(functionId, { what })
        await server.until(id, ({ progress }) => progress !== null)
        assert.equal((await server.ask<{ status: string }>('POST', `runs/${id}/cancel`)).status, 'canceled')
        const run = await server.ended(id)
        assert.deepEqual([run.status, run.message], ['canceled', 'canceled'])
      })
    }

    test(`${functionId}: a deliberately printed secret appears nowhere`, async () => {
      const id = await server.start(functionId, { what: 'tell-the-key', key: KEY })
      const run = await server.ended(id)
      assert.deepEqual(
        [run.status, run.message, run.artifacts.map(({ name }) => name)],
        ['failed', 'no access with ******', ['******.csv']],
      )
      const told = JSON.stringify([
        run,
        await server.logs(id),
        await server.annotations(id),
        await server.runs(),
        await server.versions(),
        await server.ask('GET', 'automations'),
      ])
      for (const spelled of ['swordfish', 'mauve', Buffer.from(KEY).toString('base64').slice(0, 12)])
        assert.ok(!told.includes(spelled), spelled)
      assert.match(told, /the key is \*{6}/)
      assert.doesNotMatch(server.errors(), /swordfish/)
    })
  }

  test('a process killed from outside is an exception that says how, and its children are gone', async () => {
    const id = await server.start('there', { what: 'have-a-child' })
    const { progress } = await server.until(id, (run) => run.progress !== null)
    const [first, child] = pidsOf(progress?.message)
    process.kill(first, 'SIGKILL')
    const run = await server.ended(id)
    assert.equal(run.status, 'exception')
    assert.match(run.message ?? '', /the function's process was ended by SIGKILL, and had reported no status/)
    await eventually(async () => !(await isAlive(child)), 'the child is gone')
  })

  test('canceling ends the whole process group, including one that ignores signals', async () => {
    const id = await server.start('there', { what: 'have-a-child' })
    const { progress } = await server.until(id, (run) => run.progress !== null)
    const deaf = await server.start('deaf')
    await eventually(async () => (await server.logs(deaf)).length > 0, 'it has printed its pid')
    const pids = [...pidsOf(progress?.message), ...pidsOf((await server.logs(deaf))[0].message)]
    assert.equal(pids.length, 3)
    for (const run of [id, deaf]) await server.ask('POST', `runs/${run}/cancel`)
    await eventually(
      async () => (await Promise.all(pids.map(isAlive))).every((alive) => !alive),
      'all of them are gone',
    )
    for (const run of [id, deaf]) assert.equal((await server.run(run)).status, 'canceled')
  })

  test('a run over its memory limit ends and says so', async () => {
    const run = await server.ended(await server.start('there', { what: 'hoard' }))
    assert.equal(run.status, 'exception')
    assert.match(
      run.message ?? '',
      /was ended by SIGKILL, since it took \d+ bytes of memory and the limit is 268435456/,
    )
  })

  test('a flood of output is cut in the log and does not fill the server, and its end is in the message', async () => {
    const id = await server.start('there', { what: 'flood' })
    const run = await server.ended(id)
    assert.equal(run.status, 'exception')
    assert.match(run.message ?? '', /ended by SIGKILL.*the end of the flood$/s)
    const kept = await server.logs(id)
    assert.ok(JSON.stringify(kept).length < 300_000)
    assert.ok(kept.some(({ level, message }) => level === 'warn' && message.includes('prints more than 100000 bytes')))
  })

  test('a process gets a private file in a private folder, no server environment, and leaves nothing', async () => {
    const run = await server.ended(await server.start('there', { what: 'look-around' }))
    const { environment, fileMode, folderMode, folder, files } = run.result as {
      environment: Record<string, string>
      fileMode: number
      folderMode: number
      folder: string
      files: string[]
    }
    assert.deepEqual(
      [fileMode, folderMode, files.filter((name) => !name.startsWith('tsx-'))],
      [0o600, 0o700, ['run.json']],
    )
    const names = new Set([
      'PATH',
      'LANG',
      'LC_ALL',
      'LC_CTYPE',
      'TZ',
      'NODE_EXTRA_CA_CERTS',
      'SSL_CERT_FILE',
      'SSL_CERT_DIR',
      'HOME',
      'TMPDIR',
      'TMP',
      'TEMP',
      'NODE_OPTIONS',
      'STOWAGE_RUN_CAPTURED',
      'STOWAGE_RUN_MARK',
      'PWD',
      'OPERATORS_TOKEN',
      'MODE',
    ])
    assert.deepEqual(
      Object.keys(environment).filter((name) => !names.has(name)),
      [],
    )
    assert.deepEqual(
      [environment.HOME, environment.MODE, environment.OPERATORS_TOKEN],
      [folder, 'test', '******'],
      'what is named like a secret is not told',
    )
    const name = folder.slice(folder.lastIndexOf('/') + 1)
    await eventually(async () => !(await readdir(tmpdir())).includes(name), 'the folder is gone')
  })

  test('a missing program and one without reports are exceptions that say so', async () => {
    const missing = await server.ended(await server.start('missing'))
    assert.deepEqual(
      [missing.status, missing.message],
      ['exception', 'the program "no-such-program-anywhere" could not be started: ENOENT'],
    )
    const silent = await server.ended(await server.start('silent'))
    assert.equal(
      silent.message,
      "the function's process ended with exit code 3, and had reported no status; the end of its output:\nnothing to say, ******",
    )
    const stubborn = await server.ended(await server.start('stubborn'))
    assert.match(stubborn.message ?? '', /^the function's process ended with exit code 0/)
  })

  test('two automations under different executors that start each other by versions stop', async () => {
    const versionOf = await server.ask<{ rootObjectId: string }>(
      'GET',
      `models/${await server.modelId()}/versions/${(await server.versions()).at(-1)?.id}`,
    )
    const { id: modelId } = await server.ask<{ id: string }>('POST', 'models', { name: 'Looping' })
    for (const functionId of ['here', 'there']) {
      await server.ask('POST', 'automations', {
        name: functionId,
        functionId,
        modelId,
        inputs: { what: 'make-a-version' },
        trigger: 'version',
      })
    }
    await server.ask('POST', `models/${modelId}/versions`, {
      rootObjectId: versionOf.rootObjectId,
      message: 'by a person',
    })
    const runs = async (): Promise<readonly Run[]> =>
      (await server.ask<Page<Run>>('GET', `runs?modelId=${modelId}`)).items
    // Each on the person's version, and each on the version that came of the other.
    await eventually(
      async () => (await runs()).filter(({ endedAt }) => endedAt !== null).length === 4,
      'four runs have ended',
    )
    await wait(300)
    assert.deepEqual((await runs()).map(({ functionId, status }) => `${functionId} ${status}`).sort(), [
      'here succeeded',
      'here succeeded',
      'there succeeded',
      'there succeeded',
    ])
  })

  test('a process that outlives its run ends ten seconds later, and the run keeps its status', async () => {
    const id = await server.start('lingering')
    await eventually(async () => (await server.logs(id)).length > 0, 'it has printed its pid')
    const [pid] = pidsOf((await server.logs(id))[0].message)
    await server.ended(id)
    await eventually(async () => !(await isAlive(pid)), 'the process is gone')
    const { status, message } = await server.run(id)
    assert.deepEqual([status, message], ['succeeded', 'done'])
  })

  test('the server reported none of these cases as an error', () => assert.equal(server.errors(), ''))
})
