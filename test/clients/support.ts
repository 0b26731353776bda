import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { memoryBackend } from '../../adapters/memory.ts'
import { continueOnExpect, createObjectService, openAccess } from '../../src/index.ts'

const run = promisify(execFile)
const CLIENT_TIMEOUT_MS = 60_000

export interface TestServer extends AsyncDisposable {
  readonly url: string
}

/** A server on a free port of this machine that keeps objects in memory and lets everybody in. */
export async function startServer(): Promise<TestServer> {
  const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
  const server = createServer(service.node)
  continueOnExpect(server, service)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
      await service.close({ graceMs: 0 })
    },
  }
}

/** What a client of another kind prints. Rejects when it fails, with what it complained about. */
export async function runClient(program: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<string> {
  const { stdout } = await run(program, args, { env: { ...process.env, ...environment }, timeout: CLIENT_TIMEOUT_MS, maxBuffer: 64 * 1_048_576 })
  return stdout
}

/** Runs a Python script with the interpreter that has `requests`. */
export async function runPython(script: string, environment: Readonly<Record<string, string>>): Promise<unknown> {
  return JSON.parse(await runClient(process.env.STOWAGE_TEST_PYTHON ?? 'python3', ['-c', script], environment))
}
