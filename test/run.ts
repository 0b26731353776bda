import { spawn } from 'node:child_process'
import { compile, compiledFile } from './compile.ts'

/** `npm test [-- NAME...]` compiles the sources that have changed and runs the tests in processes without a loader: see `runner.ts`. */
await compile()
const runner = spawn(
  process.execPath,
  ['--enable-source-maps', compiledFile(new URL('./runner.ts', import.meta.url)), ...process.argv.slice(2)],
  { stdio: 'inherit' },
)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => runner.kill(signal))
runner.on('exit', (code) => (process.exitCode = code ?? 1))
