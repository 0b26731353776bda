import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import {
  type AutomationContext,
  type AutomationFunction,
  defineInputs,
  executeFunction,
  secret,
  select,
} from '../../../src/automation/index.ts'

/** A function that is started as a process of its own, and does what its input says. */
class Inputs extends defineInputs({
  what: select([
    'succeed',
    'fail',
    'throw',
    'timer',
    'rejection',
    'forever',
    'obey',
    'ignore',
    'leave-open',
    'print',
    'mark-twice',
    'mark-never',
    'tell-the-key',
    'make-a-version',
    'flood',
    'hoard',
    'look-around',
    'have-a-child',
  ]),
  key: secret({ required: false }),
}) {}

/** The key, on purpose, on every way out. */
async function tellEverywhere(context: AutomationContext, key: string): Promise<void> {
  /* In the server's own process it would print where the server prints. */
  if (process.env.STOWAGE_RUN_CAPTURED !== undefined) {
    await printed(`the key is ${key}\n`)
    process.stderr.write(`the key is ${Buffer.from(key).toString('base64')} or ${encodeURIComponent(key)}\n`)
  }
  context.log.warn(`the key is ${key}`, { key })
  context.attachErrorToObjects(`key ${key}`, ['an-object'], `the key is ${key}`, { [key]: key })
  context.progress(0.5, `with ${key}`)
  const folder = await mkdtemp(join(tmpdir(), 'stowage-told-'))
  try {
    await writeFile(join(folder, 'file'), 'nothing')
    await context.storeFileResult(join(folder, 'file'), `${key}.csv`)
  } finally {
    await rm(folder, { recursive: true })
  }
  await context.createNewVersionInProject(context.automationRunData.projectId, { name: 'a version' }, `with ${key}`)
  context.markRunFailed(`no access with ${key}`, { key })
}

function printed(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(text, () => resolve())
  })
}

/** Of the run file and of the folder that it is in. */
async function modes(
  path: string,
): Promise<{
  readonly fileMode: number
  readonly folderMode: number
  readonly folder: string
  readonly files: readonly string[]
}> {
  const [file, folder] = await Promise.all([stat(path), stat(dirname(path))])
  return {
    fileMode: file.mode & 0o777,
    folderMode: folder.mode & 0o777,
    folder: dirname(path),
    files: await readdir(dirname(path)),
  }
}

export const misbehaving: AutomationFunction = executeFunction(
  async (context, { what, key }) => {
    context.attachInfoToObjects('before', ['an-object'], 'said before the end')
    switch (what) {
      case 'succeed':
        return context.markRunSuccess('all is well')
      case 'fail':
        return context.markRunFailed('a rule is broken')
      case 'throw':
        throw new Error('thrown by the function')
      case 'timer':
        setTimeout(() => {
          throw new Error('thrown in a timer')
        }, 1)
        await wait(60_000, undefined, { signal: context.signal })
        return
      case 'rejection':
        void Promise.reject(new Error('rejected, and nobody listens'))
        await wait(60_000, undefined, { signal: context.signal })
        return
      case 'forever':
        return new Promise<void>(() => undefined)
      case 'obey':
        context.progress(0.5, 'waiting to be stopped')
        await wait(60_000, undefined, { signal: context.signal })
        return
      case 'ignore':
        context.progress(0.5, 'waiting to be stopped')
        await wait(60_000)
        return
      case 'leave-open':
        setInterval(() => undefined, 1_000)
        return context.markRunSuccess('a timer is still there')
      case 'print':
        context.log.info(`the key is ${key?.reveal()}`, { key: key?.reveal() })
        throw new Error(`no access with ${key?.reveal()}`)
      case 'mark-twice':
        context.markRunSuccess('all is well')
        return context.markRunFailed('or is it')
      case 'mark-never':
        return
      case 'tell-the-key':
        return tellEverywhere(context, key?.reveal() ?? '')
      case 'make-a-version':
        await context.createNewVersionInProject(
          context.automationRunData.projectId,
          { name: `made by ${context.automationRunData.automationId}` },
          'by a run',
        )
        return context.markRunSuccess('made a version')
      case 'flood':
        for (let line = 0; line < 10_000; line++) await printed(`line ${line} ${'x'.repeat(400)}\n`)
        await printed('the end of the flood\n')
        process.kill(process.pid, 'SIGKILL')
        return
      case 'hoard': {
        const held: Buffer[] = []
        for (;;) {
          held.push(Buffer.alloc(16_777_216, held.length))
          await wait(20)
        }
      }
      case 'look-around':
        return context.markRunSuccess('looked around', {
          environment: { ...process.env } as Record<string, string>,
          ...(await modes(process.argv.at(-1) ?? '')),
        })
      case 'have-a-child': {
        const { pid } = spawn('sleep', ['600'], { stdio: 'ignore' })
        context.progress(0.5, `pids ${process.pid} ${pid}`)
        return wait(60_000)
      }
    }
  },
  Inputs,
  { name: 'misbehaving', graceMs: 300, leaseIntervalMs: 100, deliveryTimeoutMs: 5_000 },
)
