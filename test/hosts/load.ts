import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { jsonUpload } from '../http/served.ts'
import { eventually } from '../support/patience.ts'
import type { HostProcess } from './process.ts'

const CLIENTS_UP = 32
const CLIENTS_DOWN = 32
const OBJECTS_A_BATCH = 200
const GRAPH_OBJECTS = 5_000
const OBJECT_BYTES = 600

export interface Load {
  readonly uploads: number
  readonly downloads: number
}

const textOf = (): string => randomBytes(OBJECT_BYTES / 2).toString('hex')

/** Asks and reads the whole answer, of which it keeps only the digest. */
function digestOf(
  agent: Agent,
  url: string,
  init: { readonly method?: string; readonly body?: string } = {},
): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = {
      accept: 'text/plain',
      ...(init.body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(init.body) }),
    }
    const req = request(url, { agent, method: init.method ?? 'GET', headers }, (res) => {
      const hash = createHash('sha1').update(String(res.statusCode))
      res
        .on('data', (chunk: Buffer) => hash.update(chunk))
        .on('end', () => resolve(hash.digest('hex')))
        .on('error', reject)
    })
    req.on('error', reject).end(init.body)
  })
}

const OVERLOADED = {
  message: 'the server has no memory left for this request; try again shortly',
  statusCode: 503,
  code: 'overloaded',
}
const OVERLOADED_DIGEST: string = createHash('sha1')
  .update(`503${JSON.stringify(OVERLOADED)}`)
  .digest('hex')

/** Where the disk is slow an upload may be refused for the time being. */
async function eventuallyTaken(upload: () => Promise<string>): Promise<string> {
  let digest = await upload()
  await eventually(async () => {
    if (digest === OVERLOADED_DIGEST) digest = await upload()
    return digest !== OVERLOADED_DIGEST
  }, 'an upload is taken')
  return digest
}

/**
 * 32 clients that upload and 32 that download, all at once for this long. Each answer is compared: with the first of
 * the graph, or with what an upload of new objects gets.
 */
export async function loadFor(host: HostProcess, ms: number): Promise<Load> {
  const graph = Array.from({ length: GRAPH_OBJECTS }, (_, n) => ({
    id: `o${n}`,
    text: textOf(),
    ...(n === 0 ? { all: Array.from({ length: GRAPH_OBJECTS - 1 }, (_, at) => ({ referencedId: `o${at + 1}` })) } : {}),
  }))
  for (let at = 0; at < graph.length; at += OBJECTS_A_BATCH * 5)
    assert.equal(
      (await fetch(`${host.url}/objects/p`, jsonUpload(graph.slice(at, at + OBJECTS_A_BATCH * 5)))).status,
      200,
    )
  const agent = new Agent({ keepAlive: true })
  const graphUrl = `${host.url}/objects/p/o0`
  // An answer from before the graph has its plan comes in another order.
  await eventually(
    async () => (await fetch(graphUrl, { method: 'HEAD', headers: { accept: 'text/plain' } })).headers.has('etag'),
    'the graph has a plan',
  )
  const graphDigest = await digestOf(agent, graphUrl)
  const uploadDigest = createHash('sha1')
    .update(
      `200{"objects":${OBJECTS_A_BATCH},"created":${OBJECTS_A_BATCH},"differing":0,"rewritten":0,"assigned":[],"assignedCount":0}`,
    )
    .digest('hex')
  await host.tell('watch loop')
  const [endMs, count] = [performance.now() + ms, { uploads: 0, downloads: 0 }]
  const uploadOn = async (client: number): Promise<void> => {
    for (let n = 0; n === 0 || performance.now() < endMs; n++) {
      const body = JSON.stringify(
        Array.from({ length: OBJECTS_A_BATCH }, (_, at) => ({ id: `c${client}-${n}-${at}`, text: textOf() })),
      )
      const digest = await eventuallyTaken(() =>
        digestOf(agent, `${host.url}/objects/u${client % 4}`, { method: 'POST', body }),
      )
      assert.equal(digest, uploadDigest)
      count.uploads++
    }
  }
  const downloadOn = async (): Promise<void> => {
    do {
      assert.equal(await digestOf(agent, graphUrl), graphDigest)
      count.downloads++
    } while (performance.now() < endMs)
  }
  await Promise.all([
    ...Array.from({ length: CLIENTS_UP }, (_, client) => uploadOn(client)),
    ...Array.from({ length: CLIENTS_DOWN }, downloadOn),
  ])
  agent.destroy()
  return count
}
