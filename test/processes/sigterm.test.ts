import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { issueToken } from '../../src/access/token-store.ts'
import { newDataFolder, startServer } from '../cli/command.ts'
import { withHeaders } from '../contract/sides.ts'
import { idList, jsonUpload } from '../http/served.ts'
import { eventually } from '../support/patience.ts'

const BATCH_OBJECTS = 40
/** Of uploads and of downloads, before the server is stopped. */
const LOAD_MIN = 8
const GRACE_MS = 1_000

interface Client {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** What the clients wrote down, outside of the process that is stopped. */
interface Ledger {
  readonly sent: Map<string, readonly string[]>
  readonly acknowledged: Set<string>
  readonly statuses: Map<number, number>
  downloads: number
}

function batchOf(name: string): readonly object[] {
  return Array.from({ length: BATCH_OBJECTS }, (_, n) => ({
    id: `${name}-${n}`,
    to: { referencedId: `${name}-${n + 1}` },
    data: randomBytes(3_000).toString('base64'),
  }))
}

function count({ statuses }: Ledger, status: number): void {
  statuses.set(status, (statuses.get(status) ?? 0) + 1)
}

/**
 * Uploads one batch after the other until the server is gone. A batch counts as acknowledged only when its 200 has come
 * whole.
 */
async function uploadOn(client: Client, ledger: Ledger, writer: number): Promise<void> {
  for (let n = 0; ; n++) {
    const name = `w${writer}-${n}`
    ledger.sent.set(
      name,
      Array.from({ length: BATCH_OBJECTS }, (_, at) => `${name}-${at}`),
    )
    try {
      const answer = await fetch(`${client.url}/objects/demo`, withHeaders(jsonUpload(batchOf(name)), client.headers))
      const summary = (await answer.json()) as { created?: number; code?: string }
      count(ledger, answer.status)
      if (answer.status !== 200) return assert.deepEqual([answer.status, summary.code], [503, 'closing'])
      assert.equal(summary.created, BATCH_OBJECTS)
      ledger.acknowledged.add(name)
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error
      return
    }
  }
}

/** Beyond the root the order is the store's, and another one as soon as there is a plan. */
function sortedLines(text: string): string {
  return text.split('\n').toSorted().join('\n')
}

/** Downloads the same graph until the server is gone: it is whole, or the client notices that it is not. */
async function downloadOn(client: Client, ledger: Ledger, expected: string, gzip: boolean): Promise<void> {
  for (;;) {
    try {
      const answer = await fetch(
        `${client.url}/objects/demo/seed-0`,
        withHeaders(
          { headers: { Accept: 'text/plain', 'Accept-Encoding': gzip ? 'gzip' : 'identity' } },
          client.headers,
        ),
      )
      count(ledger, answer.status)
      const body = await answer.text()
      if (answer.status !== 200) return assert.equal((JSON.parse(body) as { code: string }).code, 'closing')
      assert.ok(sortedLines(body) === expected, `${body.length} characters that are not the graph`)
      ledger.downloads++
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error
      return
    }
  }
}

/** A client that reads on when the server is gone. It must see that it was cut off. */
async function readTooSlowly({ url, headers }: Client, gone: Promise<unknown>): Promise<'whole' | 'cut'> {
  const req = request(`${url}/objects/demo/large-0`, { headers: { ...headers, Accept: 'text/plain' } }).end()
  const [answer] = (await once(req, 'response')) as [NodeJS.ReadableStream & { complete: boolean }]
  answer.pause()
  const ended = new Promise<'whole' | 'cut'>((resolve) => {
    answer.on('error', () => resolve('cut')).on('close', () => resolve(answer.complete ? 'whole' : 'cut'))
  })
  await gone
  answer.resume()
  return ended
}

test('case 29: SIGTERM under load: requests finish or fail cleanly, the exit code is 0, and a restart has every acknowledged object', async (context) => {
  const folder = newDataFolder(context)
  const { token } = await issueToken(folderCredentials(folder), {
    projects: new Map([['demo', 'write']]),
    subject: 'test',
    ttlSeconds: 600,
  })
  const server = await startServer(context, ['--data', folder, '--json', '--grace-ms', String(GRACE_MS)])
  const client: Client = {
    url: (JSON.parse(server.line) as { url: string }).url,
    headers: { authorization: `Bearer ${token}` },
  }
  for (const name of ['seed', 'large']) {
    const objects =
      name === 'seed'
        ? batchOf(name)
        : batchOf(name).map((object) => ({ ...object, data: randomBytes(300_000).toString('base64') }))
    assert.equal(
      (await fetch(`${client.url}/objects/demo`, withHeaders(jsonUpload(objects), client.headers))).status,
      200,
    )
  }
  const expected = sortedLines(
    await (
      await fetch(
        `${client.url}/objects/demo/seed-0`,
        withHeaders({ headers: { Accept: 'text/plain' } }, client.headers),
      )
    ).text(),
  )
  const ledger: Ledger = { sent: new Map(), acknowledged: new Set(), statuses: new Map(), downloads: 0 }
  const load = [
    ...[0, 1, 2, 3].map(async (writer) => uploadOn(client, ledger, writer)),
    ...[true, false, true, false].map(async (gzip) => downloadOn(client, ledger, expected, gzip)),
  ]
  const slow = readTooSlowly(client, once(server.child, 'exit'))
  await eventually(() => ledger.acknowledged.size >= LOAD_MIN && ledger.downloads >= LOAD_MIN, 'there is load')
  const { code, stderr } = await server.stop('SIGTERM')
  await Promise.all(load)
  assert.deepEqual([code, server.child.signalCode], [0, null])
  assert.match(stderr, /^(stowage: request \w+ failed with closing: .*\n)*$/, 'nothing else went wrong')
  assert.equal(await slow, 'cut', 'an answer that is not whole does not look as if it were')
  assert.deepEqual(
    [...ledger.statuses.keys()].filter((status) => status !== 200 && status !== 503),
    [],
  )
  assert.ok(!existsSync(join(folder, 'stowage.lock')))

  const again = await startServer(context, ['--data', folder, '--json'])
  await foundAgain({ ...client, url: (JSON.parse(again.line) as { url: string }).url }, ledger)
  assert.equal((await again.stop()).code, 0)
})

/** Everything that was acknowledged, and of what was not, all of a batch or nothing. */
async function foundAgain(client: Client, { sent, acknowledged }: Ledger): Promise<void> {
  for (const [name, ids] of sent) {
    const diff = await fetch(`${client.url}/api/diff/demo`, withHeaders(idList(ids), client.headers))
    const held = Object.values((await diff.json()) as Record<string, boolean>).filter((isHeld) => isHeld).length
    assert.ok(
      acknowledged.has(name) ? held === BATCH_OBJECTS : held === 0 || held === BATCH_OBJECTS,
      `${name}: ${held} of ${BATCH_OBJECTS}, acknowledged: ${acknowledged.has(name)}`,
    )
  }
  const last = [...acknowledged].at(-1) ?? ''
  const graph = await fetch(`${client.url}/objects/demo/${last}-0`, withHeaders({}, client.headers))
  assert.equal(((await graph.json()) as unknown[]).length, BATCH_OBJECTS)
}
