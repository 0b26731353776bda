import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PATIENCE_MS } from '../support/patience.ts'

const MILLION = new URL('../../bench/million.ts', import.meta.url)
const MOUNTS = new URL('../../bench/mounts.ts', import.meta.url)
const VERIFY = new URL('../../bench/verify-model.ts', import.meta.url)
const SIMULATE = new URL('../simulation/simulate.ts', import.meta.url)

interface Outcome {
  readonly code: unknown
  readonly stdout: string
  readonly stderr: string
}

function outcomeOf(command: URL, args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    const argv = [...process.execArgv, fileURLToPath(command), ...args]
    execFile(process.execPath, argv, { timeout: PATIENCE_MS }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, stdout, stderr }),
    )
  })
}

const wrong: readonly (readonly [command: URL, args: readonly string[], message: RegExp, usage: RegExp])[] = [
  [MILLION, ['--object', '5'], /^Unknown option '--object'/, /^usage: .*--objects N/],
  [
    MILLION,
    ['--objects', 'many'],
    /^--objects is "many"; it must be a whole number of 1 or more$/,
    /^usage: .*--objects N/,
  ],
  [MOUNTS, ['--factor', '0'], /^--factor is "0"; it must be a whole number of 1 or more$/, /^usage: .*--factor N/],
  [VERIFY, ['model.txt'], /^a file and the id of its root are needed$/, /^usage: .*FILE ROOT/],
  [SIMULATE, ['--seed', '-1.5'], /^Option '--seed' argument is ambiguous/, /^usage: .*--seeds N/],
  [SIMULATE, ['--seed=1', '--faults=1,x'], /^--faults is "x"; it must be a whole number of 0 or more$/, /^usage: /],
]

test('commands for developers answer wrong options with one line and their usage', async () => {
  const outcomes = await Promise.all(wrong.map(([command, args]) => outcomeOf(command, args)))
  for (const [at, { code, stdout, stderr }] of outcomes.entries()) {
    const [, args, message, usage] = wrong[at]
    assert.deepEqual([code, stdout], [2, ''], `${args.join(' ')}: ${stderr}`)
    const [first, second] = stderr.split('\n')
    assert.match(first, message)
    assert.match(second, usage)
    assert.doesNotMatch(stderr, /^\s+at /m)
  }
})

test('--help prints the usage and ends', async () => {
  const { code, stdout, stderr } = await outcomeOf(MILLION, ['--help'])
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^usage: .*--objects N.*\n$/)
})
