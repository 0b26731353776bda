import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { defineInputs, number, RunFailed } from '../../src/automation/index.ts'
import { testFunction, type TestedRun } from '../../src/automation/testing/index.ts'

class Inputs extends defineInputs({ tolerance: number({ default: 10, gt: 0, lt: 100 }) }) {}

const WALL = { speckle_type: 'Wall', name: 'a wall' }

suite('the status of a run', () => {
  test('a mark sets the status with its message and result, and the function continues', async () => {
    let wentOn = false
    const run = await testFunction(
      (context) => {
        assert.equal(context.status, 'running')
        context.markRunSuccess('all walls are fine', { walls: 3 })
        assert.equal(context.status, 'succeeded')
        wentOn = true
      },
      Inputs,
      { object: WALL },
    )
    assert.deepEqual(
      [run.status, run.message, run.result, wentOn],
      ['succeeded', 'all walls are fine', { walls: 3 }, true],
    )
    const failed = await testFunction((context) => context.markRunFailed('two walls are too thin'), Inputs, {
      object: WALL,
    })
    assert.deepEqual([failed.status, failed.message], ['failed', 'two walls are too thin'])
    const exception = await testFunction(
      (context) => context.markRunException(new RangeError('no such level')),
      Inputs,
      { object: WALL },
    )
    assert.deepEqual([exception.status, exception.message], ['exception', 'RangeError: no such level'])
    assert.match(exception.logs.at(-1)?.message ?? '', /marks\.test\.ts/)
  })

  test('a second mark throws, and the run is an exception unless the function handles that', async () => {
    const run = await testFunction(
      (context) => {
        context.markRunSuccess('first')
        context.markRunFailed('second')
      },
      Inputs,
      { object: WALL },
    )
    assert.equal(run.status, 'exception')
    assert.match(run.message, /already marked as succeeded.*exactly one mark/)
    const caught = await testFunction(
      (context) => {
        context.markRunFailed('first')
        assert.throws(() => context.markRunFailed('second'), { code: 'conflict' })
        assert.throws(() => context.markRunException('third'), { code: 'conflict' })
      },
      Inputs,
      { object: WALL },
    )
    assert.deepEqual([caught.status, caught.message], ['failed', 'first'])
  })

  test('a mark needs a message', async () => {
    const run = await testFunction(
      (context) => {
        for (const words of ['', ' \n', undefined as unknown as string, 7 as unknown as string])
          assert.throws(() => context.markRunSuccess(words), TypeError)
        assert.throws(() => context.markRunSuccess('words', { big: 'x'.repeat(40_000) }), { code: 'invalid_request' })
        context.markRunSuccess('words')
      },
      Inputs,
      { object: WALL },
    )
    assert.equal(run.status, 'succeeded')
  })

  test('a run without a mark is an exception that says so, or a success with a warning', async () => {
    const run = await testFunction(() => {}, Inputs, { object: WALL })
    assert.equal(run.status, 'exception')
    assert.match(run.message, /returned without a mark/)
    const lenient = await testFunction(() => {}, Inputs, { object: WALL, defaultStatus: 'success' })
    assert.equal(lenient.status, 'succeeded')
    assert.deepEqual(
      lenient.logs.map(({ level }) => level),
      ['warn'],
    )
  })

  test('RunFailed ends the function as failed', async () => {
    const run = await testFunction(
      () => {
        throw new RunFailed('three rules are broken')
      },
      Inputs,
      { object: WALL },
    )
    assert.deepEqual([run.status, run.message], ['failed', 'three rules are broken'])
    const both = await testFunction(
      (context) => {
        context.markRunFailed('the first word')
        throw new RunFailed('the second one')
      },
      Inputs,
      { object: WALL },
    )
    assert.deepEqual([both.status, both.message], ['failed', 'the first word'])
    const contradiction = await testFunction(
      (context) => {
        context.markRunSuccess('fine')
        throw new RunFailed('not fine')
      },
      Inputs,
      { object: WALL },
    )
    assert.equal(contradiction.status, 'exception')
    assert.match(contradiction.message, /already marked as succeeded, and then threw RunFailed: not fine/)
  })

  test('a thrown error overrides the mark, and earlier reports are kept', async () => {
    const run = await testFunction(
      async (context) => {
        const { id } = await context.receiveVersion()
        context.attachWarningToObjects('thickness', [id], 'rather thin')
        context.log.info('half way')
        context.markRunSuccess('fine so far')
        throw new TypeError('walls is undefined')
      },
      Inputs,
      { object: WALL },
    )
    assert.deepEqual(
      [run.status, run.message, run.annotations.length],
      ['exception', 'TypeError: walls is undefined', 1],
    )
    assert.equal(run.logs[0].message, 'half way')
    for (const [thrown, shown] of [
      ['a text', /not an error was thrown: 'a text'/],
      [undefined, /undefined/],
      [new Error(''), /without a message/],
    ] as const) {
      const odd = await testFunction(
        () => {
          // oxlint-disable-next-line typescript/only-throw-error -- functions do
          throw thrown
        },
        Inputs,
        { object: WALL },
      )
      assert.equal(odd.status, 'exception')
      assert.match(odd.message, shown)
    }
  })

  test('a thrown value with failing getters or messages still ends the run, and earlier reports are kept', async () => {
    const failing = (): never => {
      throw new Error('looked at')
    }
    const odd: readonly (readonly [unknown, TestedRun['status'], RegExp])[] = [
      [Object.assign(new Error('x'), { message: { status: 503 } }), 'exception', /status: 503/],
      [Object.assign(new Error('words'), { name: Symbol('name') }), 'exception', /^words$/],
      [Object.defineProperty(new Error('x'), 'message', { get: failing }), 'exception', /cannot be shown/],
      [new Proxy({}, { get: failing, getPrototypeOf: failing }), 'exception', /cannot be shown/],
      [Object.assign(new RunFailed('x'), { message: 5 }), 'failed', /^5$/],
    ]
    for (const [thrown, status, words] of odd) {
      const run = await testFunction(
        (context) => {
          context.log.info('before')
          // oxlint-disable-next-line typescript/only-throw-error -- functions do
          throw thrown
        },
        Inputs,
        { object: WALL },
      )
      assert.deepEqual([run.status, run.logs[0].message], [status, 'before'])
      assert.match(run.message, words)
    }
  })

  test('an exception can be marked with an error without a message', async () => {
    const run = await testFunction((context) => context.markRunException(new Error(' ')), Inputs, { object: WALL })
    assert.deepEqual([run.status, run.message], ['exception', 'an error without a message was thrown'])
  })

  test('invalid inputs are an exception, which names the fields and shows no value', async () => {
    let wasCalled = false
    const run = await testFunction(
      () => {
        wasCalled = true
      },
      Inputs,
      { object: WALL, inputs: { tolerance: 4_711, color: 'mauve' } },
    )
    assert.deepEqual([run.status, wasCalled], ['exception', false])
    assert.match(run.message, /tolerance/)
    assert.match(run.message, /color/)
    assert.doesNotMatch(JSON.stringify(run.logs) + run.message, /4711|mauve/)
  })

  test('inputs arrive parsed, with defaults', async () => {
    const run = await testFunction(
      (context, inputs) => {
        assert.ok(inputs instanceof Inputs)
        assert.equal(context.functionInputs, inputs)
        context.markRunSuccess(`within ${inputs.tolerance}`)
      },
      Inputs,
      { object: WALL },
    )
    assert.equal(run.message, 'within 10')
  })
})
