import { fileURLToPath } from 'node:url'
import type { FunctionRegistration } from '../../../src/automation-server/index.ts'
import { misbehaving } from './misbehaving.ts'

const FILE: string = fileURLToPath(new URL('./misbehaving.ts', import.meta.url))
const SOURCES: string = fileURLToPath(new URL('../../../src', import.meta.url))
const MB = 1_048_576
/** Reports that it has succeeded, and stays. */
const LINGERING = `
  const { speckleToken, automationRunData: run } = JSON.parse(require('node:fs').readFileSync(process.argv.at(-1), 'utf8'))
  console.log('pid', process.pid)
  fetch(run.speckleServerUrl + '/api/v1/projects/' + run.projectId + '/runs/' + run.functionRunId + '/report', {
    method: 'POST', headers: { Authorization: 'Bearer ' + speckleToken, 'Content-Type': 'application/json' },
    body: JSON.stringify({ sequence: 1, status: 'succeeded', message: 'done' }),
  })
  setInterval(() => undefined, 1000)
`
const NO_INPUTS = { type: 'object', properties: {} }
const SHELL = '/bin/sh'

/** One function under both executors, and programs that know nothing of the SDK. */
export const FUNCTIONS: readonly FunctionRegistration[] = [
  { id: 'here', release: '1', function: misbehaving },
  {
    id: 'there',
    name: 'misbehaving',
    release: '1',
    inputs: misbehaving.inputs.toJSONSchema(),
    command: [process.execPath, ...process.execArgv, FILE],
    // What a package would have in its node_modules.
    readablePaths: [SOURCES],
    env: { OPERATORS_TOKEN: 'of-the-operator-4711', MODE: 'test' },
    memoryBytesMax: 256 * MB,
    outputBytesMax: 100_000,
    killAfterMs: 30_000,
  },
  { id: 'missing', name: 'missing', release: '1', inputs: NO_INPUTS, command: ['no-such-program-anywhere'] },
  {
    id: 'deaf',
    name: 'deaf',
    release: '1',
    inputs: NO_INPUTS,
    command: [SHELL, '-c', 'trap "" TERM; echo pid $$; while :; do sleep 1; done'],
    killAfterMs: 300,
  },
  {
    id: 'silent',
    name: 'silent',
    release: '1',
    inputs: NO_INPUTS,
    command: [SHELL, '-c', 'echo nothing to say, $API_TOKEN; exit 3'],
    env: { API_TOKEN: 'of-the-operator-4712' },
  },
  { id: 'lingering', name: 'lingering', release: '1', inputs: NO_INPUTS, command: [process.execPath, '-e', LINGERING] },
  {
    id: 'stubborn',
    name: 'stubborn',
    release: '1',
    inputs: NO_INPUTS,
    command: [
      SHELL,
      '-c',
      'cat "$2" > "$HOME/copy"; mkdir "$HOME/locked"; touch "$HOME/locked/file"; chmod 500 "$HOME/locked"; echo "$HOME"',
      'stubborn',
    ],
  },
]
