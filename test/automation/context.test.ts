import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import {
  type AutomationContext,
  type DagObject,
  defineInputs,
  type JsonObject,
  RunCanceled,
  RunInterrupted,
} from '../../src/automation/index.ts'
import { failCurrentRun } from '../../src/automation/runtime/index.ts'
import { testFunction, type TestedRun, type TestFunctionOptions } from '../../src/automation/testing/index.ts'
import { temporaryFolder } from '../support/folder.ts'

class Inputs extends defineInputs({}) {}

const LEVEL = { speckle_type: 'Level', name: 'ground', applicationId: 'level-0' }
const MODEL = {
  name: 'house',
  '@elements': [
    { speckle_type: 'Wall', name: 'a', '@level': LEVEL, applicationId: 'wall-a' },
    { speckle_type: 'Wall', name: 'b', '@level': LEVEL },
  ],
  '@(2)areas': [1, 2, 3, 4, 5],
}

interface Wall extends DagObject {
  readonly applicationId?: string
  readonly '@level': { name: string }
}
interface House extends DagObject {
  readonly '@elements': readonly Wall[]
  readonly '@(2)areas': number[]
}

type Body = (context: AutomationContext<Inputs>) => void | Promise<void>

function tested(body: Body, options: Partial<TestFunctionOptions> = {}): Promise<TestedRun> {
  return testFunction(body, Inputs, { object: MODEL, defaultStatus: 'success', graceMs: 50, ...options })
}

async function fileOf(t: TestContext, content: string): Promise<string> {
  const folder = temporaryFolder(t)
  const path = join(folder, 'local-name.csv')
  await writeFile(path, content)
  return path
}

/** An object of so many levels. */
function levels(count: number): JsonObject {
  return count === 1 ? {} : { in: levels(count - 1) }
}

function succeeded(run: TestedRun): void {
  assert.equal(run.status, 'succeeded', run.message)
}

suite('the model', () => {
  test('receiveVersion returns the whole model, with shared children and joined arrays', async () => {
    succeeded(
      await tested(async (context) => {
        const house = (await context.receiveVersion()) as House
        const [a, b] = house['@elements']
        assert.equal(a['@level'], b['@level'])
        assert.deepEqual([a['@level'].name, house['@(2)areas']], ['ground', [1, 2, 3, 4, 5]])
      }),
    )
  })

  test('objects yields every object once, the root first, with references', async () => {
    succeeded(
      await tested(async (context) => {
        const all: DagObject[] = []
        for await (const batch of context.objects()) all.push(...batch)
        assert.equal(all[0].name, 'house')
        assert.equal(new Set(all.map(({ id }) => id)).size, all.length)
        assert.equal(all.length, 1 + 2 + 1 + 3)
        assert.ok(JSON.stringify(all[0]).includes('referencedId'))
      }),
    )
  })

  test('the properties describe the run', async () => {
    succeeded(
      await tested(
        async (context) => {
          const { automationRunData: data, serviceClient, functionInputs, signal, status } = context
          assert.equal(data.projectId, 'house-project')
          assert.equal(data.triggers[0].triggerType, 'versionCreation')
          assert.ok(functionInputs instanceof Inputs)
          assert.deepEqual([signal.aborted, status], [false, 'running'])
          assert.equal((await serviceClient.project(data.projectId).has(['nothing'])).missing.length, 1)
        },
        { projectId: 'house-project' },
      ),
    )
  })
})

suite('annotations', () => {
  test('annotations have a level, a category, objects with their application ids, a message and metadata', async () => {
    const run = await tested(async (context) => {
      const house = (await context.receiveVersion()) as House
      const metadata = { limit: 3 }
      context.attachErrorToObjects('fire rating', house['@elements'], 'missing', metadata)
      metadata.limit = 4
      context.attachWarningToObjects('fire rating', [house.id], 'incomplete')
      context.attachSuccessToObjects('names', ['some-id'], 'fine', null)
      context.attachInfoToObjects('names', [{ id: 'other', applicationId: 7 }], 'noted')
    })
    const [error, ...others] = run.annotations
    assert.deepEqual(
      [error.category, error.level, error.message, error.metadata],
      ['fire rating', 'ERROR', 'missing', { limit: 3 }],
    )
    assert.deepEqual(Object.values(error.objectAppIds), ['wall-a', null])
    assert.deepEqual(
      others.map(({ level, metadata }) => [level, metadata]),
      [
        ['WARNING', null],
        ['SUCCESS', null],
        ['INFO', null],
      ],
    )
    assert.deepEqual(
      others.slice(1).map(({ objectAppIds }) => objectAppIds),
      [{ 'some-id': null }, { other: null }],
    )
  })

  test('invalid annotations are refused at once', async () => {
    const run = await tested((context) => {
      const cyclic: Record<string, never> = {}
      Object.assign(cyclic, { cyclic })
      const wrong: readonly (readonly [() => void, object | typeof TypeError])[] = [
        [() => context.attachErrorToObjects('', ['id'], 'message'), TypeError],
        [() => context.attachErrorToObjects('two\nlines', ['id'], 'message'), TypeError],
        [() => context.attachErrorToObjects('c'.repeat(201), ['id'], 'message'), TypeError],
        [() => context.attachErrorToObjects('category', [], 'message'), TypeError],
        [() => context.attachErrorToObjects('category', [''], 'message'), TypeError],
        [() => context.attachErrorToObjects('category', ['id', {} as { id: string }], 'message'), TypeError],
        [() => context.attachErrorToObjects('category', ['id'], ' '), TypeError],
        [() => context.attachErrorToObjects('category', ['id'], 'message', cyclic), TypeError],
        [
          () => context.attachErrorToObjects('category', ['id'], 'message', { long: 'x'.repeat(40_000) }),
          { code: 'invalid_request' },
        ],
        [() => context.attachErrorToObjects('category', ['id'], 'message', levels(33)), { code: 'invalid_request' }],
        [() => context.attachErrorToObjects('category', ['two\nlines'], 'message'), { code: 'invalid_id' }],
        [() => context.attachErrorToObjects('category', [{ id: 'ä'.repeat(257) }], 'message'), { code: 'invalid_id' }],
        [() => context.markRunSuccess('message', levels(33)), { code: 'invalid_request' }],
        [() => context.progress(1.1), RangeError],
        [() => context.progress(Number.NaN), RangeError],
      ]
      for (const [call, error] of wrong) assert.throws(call, error)
    })
    succeeded(run)
    assert.deepEqual(run.annotations, [])
  })

  test('messages are cut to their limit, and characters that cannot be shown are removed', async () => {
    const run = await tested((context) => {
      context.attachInfoToObjects('category', ['id'], `a\u0000b\ud800 ${'x'.repeat(10_000)}`)
      context.progress(0.5, 'two\nlines')
    })
    const message = run.annotations[0].message ?? ''
    assert.ok(message.startsWith('a\uFFFDb\uFFFD x') && message.endsWith('…') && message.length === 4_000)
    assert.deepEqual(run.progress, { fraction: 0.5, message: 'two lines' })
  })

  test('log lines show fields of any type', async () => {
    const run = await tested((context) => {
      context.log.debug('one', { count: 3n, nested: { deep: [1] } })
      context.log.error('two', { error: new Error('cause') })
      context.log.info('x'.repeat(20_000))
      context.log.warn(undefined as unknown as string, { long: 'y'.repeat(3_000) })
      context.log.warn(new Error('no text') as unknown as string)
    })
    assert.match(run.logs[0].message, /^one \{ count: 3n, nested: \{ deep: \[ 1 \] \} \}$/)
    assert.match(run.logs[1].message, /^two [^]*Error: cause/)
    assert.equal(run.logs[2].message.length, 16_384)
    assert.match(run.logs[3].message, /^undefined \{ long: 'y{2000}'\.\.\. 1000 more characters \}$/)
    assert.match(run.logs[4].message, /^Error: no text\n/)
  })
})

suite('versions and files', () => {
  test('a new version adds only changed objects and can be received', async () => {
    const run = await tested(async (context) => {
      const house = (await context.receiveVersion()) as House
      house['@elements'][0]['@level'].name = 'first'
      const { projectId } = context.automationRunData
      const held = async (id: string): Promise<boolean> =>
        (await context.serviceClient.project(projectId).get(id)) !== undefined
      assert.ok(await held(house.id))
      context.markRunSuccess(await context.createNewVersionInProject(projectId, house, 'levels renamed'))
    })
    const [version] = run.versions
    assert.deepEqual([version.id, version.message, run.versions.length], [run.message, 'levels renamed', 1])
    const project = run.client.project(run.projectId)
    const changed = await project.receive<House>(version.rootObjectId)
    assert.equal(changed['@elements'][1]['@level'].name, 'first')
  })

  test('an unchanged model keeps its root, and another project needs a model', async () => {
    const run = await tested(async (context) => {
      const house = await context.receiveVersion()
      await context.createNewVersionInProject('test', house, 'the same')
      await assert.rejects(context.createNewVersionInProject('another', house, 'elsewhere'), {
        code: 'invalid_request',
      })
      await assert.rejects(context.createNewVersionInProject('test', house, ''), TypeError)
      await assert.rejects(
        context.createNewVersionInProject('test', { toJSON: undefined, big: 3n }, 'a number that JSON has not'),
        { code: 'invalid_value' },
      )
      context.markRunSuccess(house.id)
    })
    assert.deepEqual(
      run.versions.map(({ rootObjectId }) => rootObjectId),
      [run.message],
    )
  })

  test('a file result keeps its bytes and its display name', async (t) => {
    const path = await fileOf(t, 'level,area\n')
    const run = await tested(async (context) =>
      context.markRunSuccess(await context.storeFileResult(path, 'Areas by level.csv')),
    )
    const [artifact] = run.artifacts
    assert.deepEqual(
      [artifact.id, artifact.name, Buffer.from(artifact.bytes).toString()],
      [run.message, 'Areas by level.csv', 'level,area\n'],
    )
  })

  test('a file result that is not a file, has no name or is too large is refused', async (t) => {
    const path = await fileOf(t, 'x'.repeat(1_001))
    const run = await tested(
      async (context) => {
        await assert.rejects(context.storeFileResult(path, 'large'), { code: 'artifact_too_large' })
        await assert.rejects(context.storeFileResult(tmpdir(), 'folder'), { code: 'invalid_request' })
        await assert.rejects(context.storeFileResult(`${path}.nothing`, 'nothing'), { code: 'ENOENT' })
        for (const name of ['', 'two\nlines', 'n'.repeat(201)])
          await assert.rejects(context.storeFileResult(path, name), TypeError)
        await assert.rejects(context.storeFileResult(path, '名'.repeat(86)), { code: 'invalid_request' })
      },
      { artifactBytesMax: 1_000 },
    )
    succeeded(run)
    assert.deepEqual(run.artifacts, [])
  })
})

suite('the end of a run', () => {
  test('the run waits for calls in flight and refuses later ones', async (t) => {
    const path = await fileOf(t, 'content')
    let late: AutomationContext<Inputs> | undefined
    const run = await tested((context) => {
      late = context
      void context.storeFileResult(path, 'started')
      context.markRunSuccess('done')
    })
    succeeded(run)
    assert.equal(run.artifacts.length, 1)
    const context = late as AutomationContext<Inputs>
    const refusal = { code: 'conflict', message: /the run has ended/ }
    await assert.rejects(context.storeFileResult(path, 'late'), refusal)
    await assert.rejects(context.receiveVersion(), refusal)
    await assert.rejects(context.createNewVersionInProject('test', {}, 'late'), refusal)
    for (const call of [
      () => context.objects(),
      () => context.log.info('late'),
      () => context.progress(1),
      () => context.markRunFailed('late'),
      () => context.attachInfoToObjects('c', ['id'], 'm'),
    ]) {
      assert.throws(call, refusal)
    }
  })

  test('an iteration that continues after the end is refused', async () => {
    let batches: AsyncIterator<readonly DagObject[]> | undefined
    await tested((context) => void (batches = context.objects()[Symbol.asyncIterator]()))
    await assert.rejects((batches as AsyncIterator<readonly DagObject[]>).next(), /the run has ended/)
  })

  test('a failed call that nothing awaited is an exception, and a handled one is not', async () => {
    const run = await tested(async (context) => {
      void context.storeFileResult('no-such-file', 'lost')
      await wait(20)
      context.markRunSuccess('done')
    })
    assert.equal(run.status, 'exception')
    assert.match(run.message, /ENOENT/)
    succeeded(
      await tested(async (context) => {
        context.storeFileResult('no-such-file', 'lost').catch(() => undefined)
        await Promise.allSettled([context.storeFileResult('no-such-file', 'lost')])
        context.markRunSuccess('done')
      }),
    )
  })

  test('a canceled run reports nothing more, and a stopped one is an exception unless it set a status', async () => {
    const stopped = async (reason: Error, body: Body): Promise<readonly [string, string]> => {
      const stop = new AbortController()
      let begun: () => void = () => undefined
      const beginning = new Promise<void>((resolve) => {
        begun = resolve
      })
      const running = tested(
        (context) => {
          begun()
          return body(context)
        },
        { signal: stop.signal, defaultStatus: 'exception' },
      )
      await beginning
      stop.abort(reason)
      const { status, message } = await running
      return [status, message]
    }
    const obeys: Body = async ({ signal }) => {
      await wait(10_000, undefined, { signal })
    }
    assert.deepEqual(await stopped(new RunCanceled('not needed any more'), obeys), ['canceled', 'not needed any more'])
    assert.deepEqual(await stopped(new RunInterrupted('the host closes'), obeys), [
      'exception',
      'the run was stopped: RunInterrupted: the host closes',
    ])
    const [status, message] = await stopped(new RunInterrupted('the host closes'), () => new Promise(() => undefined))
    assert.equal(status, 'exception')
    assert.match(message, /did not return within 50 ms/)
    assert.deepEqual(
      await stopped(new RunInterrupted('the host closes'), async (context) => {
        await wait(10_000, undefined, { signal: context.signal }).catch(() =>
          context.markRunFailed('half of it is wrong'),
        )
      }),
      ['failed', 'half of it is wrong'],
    )
  })

  test('a host can tell which run caused an error', async () => {
    assert.equal(failCurrentRun(new Error('of nobody')), false)
    const run = await tested(async (context) => {
      setTimeout(() => assert.equal(failCurrentRun(new Error('from a timer')), true), 1)
      await wait(5_000, undefined, { signal: context.signal })
    })
    assert.deepEqual([run.status, run.message], ['exception', 'from a timer'])
  })
})
