import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { JsonObject, Annotation } from '../../src/automation/index.ts'
import type { LogLine } from '../../src/automation/runtime/index.ts'
import type { Page, Run, RunDetails, Version } from '../../src/automation-server/index.ts'
import { createClient } from '../../src/client/index.ts'
import { inTime, PATIENCE_MS } from '../support/patience.ts'
import type { HostSettings } from './automation-host.ts'

const HOST = fileURLToPath(new URL('./automation-host.ts', import.meta.url))
const PROJECT = 'demo'

export interface AutomationServer {
  readonly url: string
  readonly process: ChildProcess
  /** What it has printed on its standard error so far. */
  readonly errors: () => string
  readonly ask: <T>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object) => Promise<T>
  /** Starts a function on the model: the id of the run. */
  readonly start: (functionId: string, inputs?: JsonObject) => Promise<string>
  readonly run: (runId: string) => Promise<RunDetails>
  /** The run once it is so. An error if it ends without, or takes too long. */
  readonly until: (runId: string, isSo: (run: RunDetails) => boolean) => Promise<RunDetails>
  readonly ended: (runId: string) => Promise<RunDetails>
  readonly logs: (runId: string) => Promise<readonly LogLine[]>
  readonly annotations: (runId: string) => Promise<readonly Annotation[]>
  readonly modelId: () => Promise<string>
  readonly runs: () => Promise<readonly Run[]>
  readonly versions: () => Promise<readonly Version[]>
}

/** What ends: a test, or all of them. */
export interface Lasting {
  readonly after: (work: () => void | Promise<void>) => void
}

/** A server as a process of its own, with the functions of `functions/registered.ts` in it and as its children. */
export async function automationServer(t: Lasting, settings: HostSettings): Promise<AutomationServer> {
  const host = spawn(process.execPath, [...process.execArgv, HOST, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => {
    host.kill('SIGKILL')
  })
  let errors = ''
  host.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const printed = Promise.race([
    once(host.stdout.setEncoding('utf8'), 'data'),
    once(host, 'exit').then(() => Promise.reject(new Error(errors))),
  ])
  const line = await inTime(printed, 'the server prints its address')
  return { process: host, errors: () => errors, ...asked(String(line[0]).trim()) }
}

function asked(url: string): Omit<AutomationServer, 'process' | 'errors'> {
  const ask = async <T>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<T> => {
    const sent =
      body === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
    const answer = await fetch(`${url}/api/v1/projects/${PROJECT}/${path}`, { method, ...sent })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${text}`)
    return JSON.parse(text) as T
  }
  const items = async <T>(path: string): Promise<readonly T[]> => (await ask<Page<T>>('GET', path)).items
  const run: AutomationServer['run'] = (runId) => ask('GET', `runs/${runId}`)
  const until: AutomationServer['until'] = async (runId, isSo) => {
    const beganAtMs = performance.now()
    for (;;) {
      const found = await run(runId)
      if (isSo(found)) return found
      if (found.endedAt !== null || performance.now() - beganAtMs > PATIENCE_MS)
        throw new Error(`it was waited in vain for something of this run: ${JSON.stringify(found)}`)
      await wait(30)
    }
  }
  let model: Promise<string> | undefined
  const modelId = (): Promise<string> => {
    model ??= newModel(url, ask)
    return model
  }
  return {
    url,
    ask,
    run,
    until,
    modelId,
    start: async (functionId, inputs = {}) => {
      const { id } = await ask<{ id: string }>('POST', 'automations', {
        name: functionId,
        functionId,
        modelId: await modelId(),
        inputs,
        trigger: 'manual',
      })
      return (await ask<{ id: string }>('POST', `automations/${id}/runs`, {})).id
    },
    ended: (runId) => until(runId, ({ endedAt }) => endedAt !== null),
    logs: (runId) => items(`runs/${runId}/logs?limit=1000`),
    annotations: (runId) => items(`runs/${runId}/annotations`),
    runs: () => items('runs'),
    versions: async () => items(`models/${await modelId()}/versions`),
  }
}

async function newModel(url: string, ask: AutomationServer['ask']): Promise<string> {
  const { root: rootObjectId } = await createClient({ url, token: 'open' })
    .project(PROJECT)
    .send({ name: 'a house', '@walls': [{ name: 'a wall' }] })
  const { id } = await ask<{ id: string }>('POST', 'models', { name: 'House' })
  await ask('POST', `models/${id}/versions`, { rootObjectId, message: 'first' })
  return id
}

/** Whether a process is there; one that has ended and waits to be noticed is not. */
export async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const { readFile } = await import('node:fs/promises')
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat === '' ? process.platform !== 'linux' : !/\) [ZX] /.test(stat)
}
