import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import {
  type AutomationContext,
  defineFunction,
  defineInputs,
  RunFailed,
  RunInterrupted,
  secret,
} from '../../src/automation/index.ts'
import {
  runFunction,
  type RunBackend,
  type RunOptions,
  type RunOutcome,
  type RunReport,
} from '../../src/automation/runtime/index.ts'
import { StowageError } from '../../src/index.ts'
import { eventually, longerThanAnOverflowedTimer, PATIENCE_MS } from '../support/patience.ts'
import { memoryRun } from './memory-run.ts'

class Inputs extends defineInputs({ key: secret({ required: false }) }) {}

type Body = (context: AutomationContext<Inputs>, inputs: Inputs) => void | Promise<void>

const QUICK: Pick<RunOptions, 'flushIntervalMs' | 'deliveryTimeoutMs' | 'leaseIntervalMs' | 'retry'> = {
  flushIntervalMs: 5,
  deliveryTimeoutMs: PATIENCE_MS,
  leaseIntervalMs: 20,
  retry: { delayMs: 1, delayMsMax: 5 },
}

interface Ran {
  readonly outcome: RunOutcome
  readonly reported: Awaited<ReturnType<typeof memoryRun>>['backend']['reported']
  readonly reports: readonly RunReport[]
}

/** Runs a body over a backend in memory, whose methods may be replaced. */
async function ran(
  body: Body,
  change: (backend: RunBackend) => Partial<RunBackend> = () => ({}),
  options: Partial<RunOptions> = {},
): Promise<Ran> {
  const { backend, runData } = await memoryRun()
  const reports: RunReport[] = []
  const recorded: RunBackend = {
    client: backend.client,
    triggeringVersion: () => backend.triggeringVersion(),
    report: (report) => {
      reports.push(report)
      return backend.report(report)
    },
    createVersion: (version) => backend.createVersion(version),
    storeArtifact: (artifact) => backend.storeArtifact(artifact),
  }
  const outcome = await runFunction(defineFunction(body, Inputs, { graceMs: 100 }), {
    ...QUICK,
    runData,
    inputs: null,
    ...options,
    backend: { ...recorded, ...change(recorded) },
  })
  return { outcome, reported: backend.reported, reports }
}

const unavailable = (): StowageError => new StowageError('storage_unavailable', 'try again')

suite('delivery', () => {
  test('failed reports are sent again under the same number until accepted, and stored once even if a response is lost', async () => {
    let calls = 0
    const { outcome, reported } = await ran(
      async (context) => {
        for (let n = 0; n < 30; n++) {
          context.attachErrorToObjects('rule', [`object-${n}`], 'broken')
          context.log.info(`line ${n}`)
          const before = calls
          if (n % 10 === 0) await eventually(() => calls > before, 'a report is sent')
        }
        context.markRunFailed('thirty')
      },
      ({ report }) => ({
        report: async (sent) => {
          calls += 1
          if (calls % 3 === 0) throw unavailable()
          await report(sent)
          if (calls % 3 === 1) throw unavailable()
        },
      }),
    )
    assert.deepEqual(
      [outcome.status, outcome.isDelivered, reported.status, reported.message],
      ['failed', true, 'failed', 'thirty'],
    )
    assert.deepEqual(
      reported.annotations.map(({ objectAppIds }) => Object.keys(objectAppIds)[0]),
      Array.from({ length: 30 }, (_, n) => `object-${n}`),
    )
    assert.deepEqual(
      reported.logs.map(({ message }) => message),
      Array.from({ length: 30 }, (_, n) => `line ${n}`),
    )
  })

  test('a run reports that it runs, then many items in few bounded reports, and the status last', async () => {
    const { reports } = await ran((context) => {
      for (let n = 0; n < 3_000; n++) context.attachInfoToObjects('rule', [`object-${n}`], 'x'.repeat(200))
      for (let n = 0; n <= 1_000; n++) context.progress(n / 1_000)
      context.markRunSuccess('done')
    })
    assert.equal(reports[0].status, 'running')
    assert.deepEqual(
      reports.map(({ sequence }) => sequence),
      reports.map((_, at) => at + 1),
    )
    assert.ok(reports.length < 20, `${reports.length} reports`)
    assert.ok(reports.every((report) => JSON.stringify(report).length < 400_000))
    assert.equal(
      reports.reduce((sum, { annotations = [] }) => sum + annotations.length, 0),
      3_000,
    )
    assert.ok(reports.filter(({ progress }) => progress !== undefined).length < 5)
    assert.equal(reports.at(-1)?.status, 'succeeded')
  })

  test('an annotation of many objects is split', async () => {
    const { reported } = await ran((context) => {
      context.attachWarningToObjects(
        'many',
        Array.from({ length: 2_500 }, (_, n) => ({ id: `object-${n}`, applicationId: `app-${n}` })),
        'too many',
      )
      context.markRunSuccess('done')
    })
    assert.deepEqual(
      reported.annotations.map(({ objectAppIds }) => Object.keys(objectAppIds).length),
      [1_000, 1_000, 500],
    )
    assert.equal(reported.annotations[2].objectAppIds['object-2499'], 'app-2499')
  })

  test('the delivery queue is bounded: annotations are refused, and dropped log lines are counted', async () => {
    let release = (): void => undefined
    const blocked = new Promise<void>((resolve) => (release = resolve))
    const { outcome, reported } = await ran(
      async (context) => {
        for (let n = 0; n < 12_000; n++) context.log.debug(`line ${n}`)
        assert.throws(
          () => {
            for (let n = 0; n < 10_000; n++) context.attachInfoToObjects('rule', ['object'], 'x'.repeat(4_000))
          },
          { code: 'overloaded' },
        )
        release()
        context.markRunSuccess('done')
      },
      ({ report }) => ({
        report: async (sent) => {
          await blocked
          await report({ ...sent, annotations: [] })
        },
      }),
    )
    assert.equal(outcome.status, 'succeeded')
    assert.match(reported.logs.at(-1)?.message ?? '', /2000 lines were dropped/)
  })

  test('a report with refused content makes the run an exception, and the rest is delivered', async () => {
    let refuse = (): void => undefined
    const refused = new Promise<void>((resolve) => (refuse = resolve))
    const { outcome, reported } = await ran(
      async (context) => {
        context.attachInfoToObjects('wrong', ['object'], 'refused')
        await refused
        context.attachInfoToObjects('right', ['object'], 'taken')
        context.markRunSuccess('done')
      },
      ({ report }) => ({
        report: async (sent) => {
          if (sent.annotations?.some(({ category }) => category === 'wrong') === true) {
            refuse()
            throw new StowageError('invalid_request', 'no such category')
          }
          await report(sent)
        },
      }),
    )
    assert.deepEqual([outcome.status, outcome.isDelivered], ['exception', true])
    assert.match(reported.message, /could not be delivered: StowageError: no such category/)
    assert.deepEqual(
      reported.annotations.map(({ category }) => category),
      ['right'],
    )
  })

  test('a backend that never answers is abandoned after a time limit', async () => {
    const { outcome } = await ran(
      (context) => context.markRunSuccess('done'),
      () => ({ report: () => new Promise<void>(() => undefined) }),
      { deliveryTimeoutMs: 50 },
    )
    assert.deepEqual(
      [outcome.status, outcome.message, outcome.isDelivered],
      [
        'exception',
        'the final report (succeeded) could not be delivered: the delivery was given up after 50 ms',
        false,
      ],
    )
  })

  test('a run is not reported as successful when its annotations were given up', async () => {
    const { outcome, reported } = await ran(
      (context) => {
        context.attachErrorToObjects('rule', ['object'], 'broken')
        context.markRunSuccess('done')
      },
      (recorded) => ({
        report: (report) =>
          report.annotations === undefined ? recorded.report(report) : new Promise<void>(() => undefined),
      }),
      { deliveryTimeoutMs: 50, flushIntervalMs: 1 },
    )
    assert.deepEqual([outcome.status, outcome.isDelivered], ['exception', false])
    assert.match(outcome.message, /the delivery was given up after 50 ms/)
    assert.notEqual(reported.status, 'succeeded')
  })

  test('an infinite time limit is long, not zero', async () => {
    const { outcome } = await ran(
      async (context) => {
        context.markRunSuccess('in time')
        await longerThanAnOverflowedTimer()
      },
      (recorded) => ({
        report: async (report) => {
          await longerThanAnOverflowedTimer()
          return recorded.report(report)
        },
        renewLease: () => Promise.reject(new StowageError('conflict', 'asked at once')),
      }),
      { deliveryTimeoutMs: Infinity, leaseIntervalMs: Infinity, flushIntervalMs: 2 ** 31 },
    )
    assert.deepEqual([outcome.status, outcome.isDelivered, outcome.message], ['succeeded', true, 'in time'])
    const stopping = new AbortController()
    const { status, message } = await runFunction(
      defineFunction(
        async (context) => {
          stopping.abort(new RunInterrupted('stopped'))
          await longerThanAnOverflowedTimer()
          context.markRunSuccess('in time')
        },
        Inputs,
        { graceMs: Infinity },
      ),
      {
        ...QUICK,
        ...(await memoryRun()),
        inputs: null,
        signal: stopping.signal,
        deliveryTimeoutMs: Infinity,
        leaseIntervalMs: Infinity,
      },
    )
    assert.deepEqual([status, message], ['succeeded', 'in time'])
  })

  test('a run that the server ended stops and reports nothing more', async () => {
    const { outcome, reported } = await ran(
      async (context) => {
        context.progress(0.5)
        await wait(PATIENCE_MS, undefined, { signal: context.signal })
      },
      () => ({
        report: async ({ sequence }) => {
          if (sequence > 1) throw new StowageError('conflict', 'the run is canceled')
        },
      }),
    )
    assert.deepEqual([outcome.status, outcome.isDelivered, reported.status], ['canceled', false, 'pending'])
  })

  test('the lease reports a cancellation, and a failed renewal does not stop the run', async () => {
    let beats = 0
    const { outcome } = await ran(
      async (context) => {
        await wait(PATIENCE_MS, undefined, { signal: context.signal })
      },
      () => ({
        renewLease: async () => {
          beats += 1
          if (beats < 3) throw unavailable()
          return { status: 'running', canceled: beats > 4 }
        },
      }),
    )
    assert.deepEqual([outcome.status, outcome.message, beats], ['canceled', 'the run was canceled', 5])
  })

  test('a second final report is marked as not delivered', async () => {
    const { outcome, reported } = await ran(
      (context) => context.markRunSuccess('mine'),
      ({ report }) => ({
        report: async (sent) => {
          if (sent.status === 'succeeded')
            await report({ ...sent, sequence: 1_000, status: 'failed', message: 'theirs' })
          await report(sent)
          if (sent.status === 'succeeded') throw new StowageError('conflict', 'the run has failed')
        },
      }),
    )
    assert.deepEqual(
      [outcome.status, outcome.isDelivered, reported.status, reported.message],
      ['succeeded', false, 'failed', 'theirs'],
    )
  })

  test('no channel leaks secrets: messages, annotations, metadata, progress, log, names and versions', async () => {
    const key = 'sword fish/mauve'
    const { reported, reports } = await ran(
      async (context, inputs) => {
        const shown = inputs.key?.reveal() ?? ''
        const encoded = encodeURIComponent(shown)
        context.attachErrorToObjects(
          `category ${shown}`,
          [{ id: 'object', applicationId: shown }],
          `message ${encoded}`,
          { [shown]: Buffer.from(`u:${shown}`).toString('base64') },
        )
        context.progress(0.5, `with ${shown}`)
        context.log.warn(`with ${shown}`, { shown, json: JSON.stringify({ shown }), token: 'token-violet' })
        await context.createNewVersionInProject('demo', { name: 'new' }, `version of ${shown}`)
        context.markRunFailed(`no access with ${encoded} and token-violet`, { shown })
      },
      () => ({}),
      { inputs: { key }, secrets: ['token-violet'] },
    )
    const said = JSON.stringify([reports, reported])
    assert.equal(reported.message, 'no access with ****** and ******')
    assert.equal(reported.versions[0].message, 'version of ******')
    for (const trace of ['mauve', 'violet', Buffer.from(key).toString('base64').slice(2, 12)])
      assert.ok(!said.includes(trace), trace)
  })
  test('a cut text contains no part of a secret, and no text exceeds the limits of a server', async () => {
    const key = 'Sword-fish-4711'
    const { reported } = await ran(
      (context) => {
        const at = (length: number): string => `${'x'.repeat(length - 6)} ${key}`
        context.attachErrorToObjects('category', [{ id: 'object', applicationId: at(512) }], at(4_000), { key })
        context.log.info('fields', { text: at(2_000), error: Object.assign(new Error('cause'), { text: at(2_000) }) })
        context.markRunException(Object.assign(new Error(at(4_000)), { text: at(2_000) }))
      },
      () => ({}),
      { inputs: { key } },
    )
    assert.equal(reported.annotations.length, 1)
    assert.doesNotMatch(JSON.stringify(reported), /Sword/)
    const message = { text: `${'x'.repeat(1_994)} ${key}` }
    for (const thrown of [
      message,
      Object.assign(new Error('x'), { message }),
      Object.assign(new RunFailed('x'), { message }),
    ]) {
      const { outcome } = await ran(
        () => {
          // oxlint-disable-next-line typescript/only-throw-error -- functions do
          throw thrown
        },
        () => ({}),
        { inputs: { key } },
      )
      assert.doesNotMatch(outcome.message, /Sword/)
    }
    const { reported: grown } = await ran(
      (context) => {
        context.attachErrorToObjects('4711 '.repeat(40), ['object'], '4711 '.repeat(790))
        context.markRunFailed('4711')
      },
      () => ({}),
      { inputs: { key: '4711' } },
    )
    assert.deepEqual([grown.annotations[0].category.length, grown.annotations[0].message?.length], [200, 4_000])
  })
})
