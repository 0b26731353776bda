import { spawn } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { compile, compiledFile } from './compile.ts'

/** `npm test [-- NAME...]` compiles the sources that have changed and runs the tests in processes without a loader: see `runner.ts`. `STOWAGE_TEST_TRACKING=1` names the tests of uncaught errors: see `untracked.ts`. */
await compile()
const { STOWAGE_TEST_SECOND_TRY, STOWAGE_TEST_TRACKING } = process.env
const isTracking = [STOWAGE_TEST_SECOND_TRY, STOWAGE_TEST_TRACKING].includes('1')
const untracked = ['--import', pathToFileURL(compiledFile(new URL('./untracked.ts', import.meta.url))).href]
const runner = spawn(
  process.execPath,
  [
    '--enable-source-maps',
    ...(isTracking ? [] : untracked),
    compiledFile(new URL('./runner.ts', import.meta.url)),
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit' },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal))
runner.on('exit', (code) => (process.exitCode = code ?? 1))
