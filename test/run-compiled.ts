import { spawn } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { withoutOwnSettings } from '../bench/own-settings.ts'
import { compile, compiledFile } from './compile.ts'

/**
 * Compiles the sources that have changed, and runs one of them without a loader, which would cost each process a second
 * and each call a little. As a command: `tsx test/run-compiled.ts FILE [ARGUMENT...]`.
 */
export async function runCompiled(source: URL, args: readonly string[]): Promise<void> {
  await compile()
  const child = spawn(process.execPath, ['--enable-source-maps', compiledFile(source), ...args], {
    stdio: 'inherit',
    env: withoutOwnSettings(process.env),
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  child.on('exit', (code) => (process.exitCode = code ?? 1))
}

if (process.argv[1] === import.meta.filename) {
  const [file, ...args] = process.argv.slice(2)
  await runCompiled(pathToFileURL(file), args)
}
