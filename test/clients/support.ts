import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import type { Target } from '../../bench/upload.ts'
import { startServer as startCommand, newDataFolder, stowage } from '../cli/command.ts'
import { type OpenHost, startBalancedHosts, startHost } from '../engines/balanced-hosts.ts'
import { startBalancer, startServers, storageOn } from '../engines/cluster.ts'
import { openService, type ServedOptions } from '../http/served.ts'
import { newSharedStorage, SHARED_ENGINES } from '../support/several-servers.ts'

const run = promisify(execFile)
const CLIENT_TIMEOUT_MS = 540_000

export interface TestServer extends AsyncDisposable {
  readonly url: string
}

/**
 * A server on a free port of this machine that keeps objects in memory and, unless told otherwise, lets everybody in.
 * On shared engines it is three servers behind nginx.
 */
export async function startServer(
  options: ServedOptions = {},
  open: OpenHost = (service) => Promise.resolve(createServer(service.node)),
): Promise<TestServer> {
  const { url, close } =
    SHARED_ENGINES === undefined
      ? await startHost(openService(options), open)
      : await startBalancedHosts(
          newSharedStorage(SHARED_ENGINES).map((backend) => openService({ ...options, backend })),
          open,
        )
  return { url, [Symbol.asyncDispose]: close }
}

/**
 * The command itself in a process of its own, over files and with a token: what somebody runs for clients that insist
 * on 201. On shared engines it is three processes behind nginx.
 */
export async function serveFor201(context: TestContext, projectId: string): Promise<Target> {
  if (SHARED_ENGINES !== undefined) {
    const storage = storageOn(SHARED_ENGINES, `served_${randomBytes(8).toString('hex')}`)
    const { servers, token } = await startServers(context, storage, 3, { args: ['--upload-status', '201'] })
    return { url: await startBalancer(context, { servers }), token, projectId }
  }
  const data = newDataFolder(context)
  const { stdout } = await stowage(['token', '--data', data, '--project', projectId, '--access', 'write'])
  const { line } = await startCommand(context, ['--data', data, '--upload-status', '201', '--json'])
  return { url: (JSON.parse(line) as { url: string }).url, token: stdout.trim(), projectId }
}

/**
 * The lines `<id> TAB <json>` of a text, by id. A loader may ask twice for an object, in two requests; both answers
 * must be the same.
 */
export function linesById(text: string): Map<string, string> {
  const byId = new Map<string, string>()
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [id, json] = [line.slice(0, line.indexOf('\t')), line.slice(line.indexOf('\t') + 1)]
    assert.equal(byId.get(id) ?? json, json, `${id} came twice and differs`)
    byId.set(id, json)
  }
  return byId
}

export async function readLines(path: string): Promise<Map<string, string>> {
  return linesById(await readFile(path, 'utf8'))
}

/** Whether two sets of objects are the same byte for byte; says which differ first, not all of both. */
export function assertSameObjects(seen: ReadonlyMap<string, string>, expected: ReadonlyMap<string, string>): void {
  const differing = [...expected].filter(([id, json]) => seen.get(id) !== json).map(([id]) => id)
  assert.deepEqual(differing.slice(0, 3), [], `${differing.length} of ${expected.size} objects are missing or differ`)
  assert.equal(seen.size, expected.size)
}

/**
 * The environment variable that says where the pipeline has put something. Tests fail without it: nothing is skipped.
 */
export function required(variable: string, what: string): string {
  const value = process.env[variable]
  assert.ok(value, `${variable} must name ${what}; .ci/clients sets it`)
  return value
}

/**
 * What a client of another kind prints. Rejects when it fails, with what it complained about, and when it takes too
 * long.
 */
export async function runClient(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await run(program, args, {
    env: { ...process.env, ...environment },
    timeout: CLIENT_TIMEOUT_MS,
    maxBuffer: 64 * 1_048_576,
  })
  return stdout
}

/** Runs a Python script with the interpreter that has `requests`. */
export async function runPython(script: string, environment: Readonly<Record<string, string>>): Promise<unknown> {
  return JSON.parse(await runClient(process.env.STOWAGE_TEST_PYTHON ?? 'python3', ['-c', script], environment))
}
