import { spawn } from 'node:child_process'
import { freePort } from '../../bench/free-port.ts'
import type { Ending } from '../support/folder.ts'
import { engineProgram, listens } from './s3-engine.ts'

/** A port in front of each engine. */
export interface SlowPorts {
  readonly postgres: number
  readonly s3: number
  /** From now on every answer comes so much later. */
  slowDown(latencyMs: number): Promise<void>
  /** The same for one of the engines. */
  slowDownOne(name: 'postgres' | 's3', latencyMs: number): Promise<void>
}

/** toxiproxy in front of both engines. */
export async function startToxiproxy(
  ending: Ending,
  engines: Readonly<Record<'postgres' | 's3', { readonly port: number }>>,
): Promise<SlowPorts> {
  const api = await freePort()
  const child = spawn(engineProgram('toxiproxy'), ['-host', '127.0.0.1', '-port', String(api)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  ending.after(() => void child.kill('SIGKILL'))
  await listens(child, api)
  const tell = async (path: string, body: object): Promise<void> => {
    const { ok, status } = await fetch(`http://127.0.0.1:${api}${path}`, { method: 'POST', body: JSON.stringify(body) })
    if (!ok) throw new Error(`toxiproxy answered ${status} to ${path}`)
  }
  const ports = { postgres: await freePort(), s3: await freePort() }
  const names = ['postgres', 's3'] as const
  for (const name of names) {
    const upstream = `127.0.0.1:${engines[name].port}`
    await tell('/proxies', { name, listen: `127.0.0.1:${ports[name]}`, upstream })
  }
  const slowDownOne = (name: 'postgres' | 's3', latencyMs: number): Promise<void> =>
    tell(`/proxies/${name}/toxics`, { type: 'latency', stream: 'downstream', attributes: { latency: latencyMs } })
  return {
    ...ports,
    slowDownOne,
    slowDown: async (latencyMs) => {
      for (const name of names) await slowDownOne(name, latencyMs)
    },
  }
}
