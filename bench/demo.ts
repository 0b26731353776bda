import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildDemo, type Demo, fillDemo, printRequests, printSignIn, PROJECT } from './demo-content.ts'
import { tryAll } from './demo-smoke.ts'
import { readOptions } from './options.ts'
import { REPOSITORY } from './repository.ts'
import { exitOnSignals, issueToken, startServer } from './server.ts'
import type { RunningServer } from './server-process.ts'

/*
 * `npm start`: the service on its embedded default, with a building to look at, three functions that run on it, and a line to paste for each endpoint.
 * Runs until Ctrl-C. `--data` and `--port` choose another folder and port. With `--smoke` it works in a folder of its own, tries every line that it prints and
 * every function, and ends.
 */

/** A signal that ends npm ends its shell, which does not pass it on. */
const PARENT_CHECK_MS = 500

const chosen = readOptions('npm start -- [--port N] [--data FOLDER] [--smoke]', {
  smoke: { type: 'boolean', default: false },
  port: { type: 'string', default: '8642' },
  data: { type: 'string', default: join(REPOSITORY, '.stowage') },
})

try {
  await (chosen.smoke ? smoke() : demo(chosen.data, ['--port', chosen.port], staysUp))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

async function smoke(): Promise<void> {
  exitOnSignals()
  const folder = await mkdtemp(join(tmpdir(), 'stowage-demo-'))
  try {
    await demo(folder, ['--port', '0'], tryAll)
    console.log('\nOnce more on the same folder: nothing is uploaded or set up twice.\n')
    await demo(folder, ['--port', '0'], async (server, shown) => {
      if (shown.automations.created > 0) throw new Error(`${shown.automations.created} things were set up again`)
      await tryAll(server, shown)
    })
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function demo(
  folder: string,
  options: readonly string[],
  afterPrinting: (server: RunningServer, demo: Demo) => Promise<void>,
): Promise<void> {
  const functions = buildDemo()
  const token = await issueToken(folder, PROJECT)
  const server = await startServer(folder, [...options, ...functions], token)
  try {
    const shown = await fillDemo({ url: server.url, token, projectId: PROJECT })
    console.log(`\nStowage answers on ${server.url}. Lines to try in another terminal:\n`)
    printRequests(shown)
    printSignIn(server)
    await afterPrinting(server, shown)
  } finally {
    await server.stop()
  }
}

async function staysUp(server: RunningServer): Promise<void> {
  let stopping = false
  const stop = (): void => {
    stopping = true
    void server.stop()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
  const parent = process.ppid
  const watch = setInterval(() => process.ppid !== parent && stop(), PARENT_CHECK_MS)
  const code = await server.ended
  clearInterval(watch)
  if (!stopping) throw new Error(`the server ended with code ${code}`)
}
