import { fileURLToPath } from 'node:url'
import type { RegisteredAs } from '../../../src/automation-server/index.ts'
import { misbehaving } from './misbehaving.ts'

const FILE: string = fileURLToPath(new URL('./misbehaving.ts', import.meta.url))
const MB = 1_048_576
const NO_INPUTS = { type: 'object', properties: {} }
const SHELL = '/bin/sh'

/** One function under both executors, and programs that know nothing of the SDK. */
export const FUNCTIONS: readonly RegisteredAs[] = [
  { id: 'here', release: '1', function: misbehaving },
  {
    id: 'there', name: 'misbehaving', release: '1', inputs: misbehaving.inputs.toJSONSchema(), command: [process.execPath, ...process.execArgv, FILE],
    env: { OPERATORS_TOKEN: 'of-the-operator-4711', MODE: 'test' }, memoryBytesMax: 256 * MB, outputBytesMax: 100_000, killAfterMs: 2_000,
  },
  { id: 'missing', name: 'missing', release: '1', inputs: NO_INPUTS, command: ['no-such-program-anywhere'] },
  { id: 'deaf', name: 'deaf', release: '1', inputs: NO_INPUTS, command: [SHELL, '-c', 'trap "" TERM; echo pid $$; while :; do sleep 1; done'], killAfterMs: 300 },
  { id: 'silent', name: 'silent', release: '1', inputs: NO_INPUTS, command: [SHELL, '-c', 'echo nothing to say; exit 3'] },
  {
    id: 'stubborn', name: 'stubborn', release: '1', inputs: NO_INPUTS,
    command: [SHELL, '-c', 'cat "$2" > "$HOME/copy"; mkdir "$HOME/locked"; touch "$HOME/locked/file"; chmod 500 "$HOME/locked"; echo "$HOME"', 'stubborn'],
  },
]
