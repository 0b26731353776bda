import { type Cluster, type ClusterServer, startBalancer, startServers, startStorage } from '../test/engines/cluster.ts'
import type { Ending } from '../test/support/folder.ts'
import { buildDemo, type Demo, type DemoPages, fillDemo, printRequests, printSignIn, PROJECT } from './demo-content.ts'
import { tryAll } from './demo-smoke.ts'
import { readOptions } from './options.ts'
import { COMMAND } from './server.ts'

/*
 * `npm run cluster`: PostgreSQL, an S3 store, three servers over both, and nginx that sends each request to the next
 * server, all on this machine and in temporary folders, with the demo of `npm start`. Runs until Ctrl-C, then stops
 * everything and leaves nothing. With `--smoke` it tries every line that it prints and every function, and ends.
 */

const SERVERS = 3

const { smoke } = readOptions('npm run cluster -- [--smoke]', { smoke: { type: 'boolean', default: false } })
const cleanups: (() => void | Promise<void>)[] = []
const ending: Ending = { after: (cleanup) => cleanups.push(cleanup) }
const stopped = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
})

try {
  const functions = buildDemo()
  console.log('Starting PostgreSQL, the S3 store, three servers and nginx ...')
  const storage = await startStorage(ending)
  const { servers, token } = await startServers(ending, storage, SERVERS, { args: functions, command: [COMMAND] })
  // Functions that run are ended by their server.
  cleanups.push(async () => void (await Promise.all(servers.map(({ running }) => running.stop()))))
  const url = await startBalancer(ending, { servers })
  const demo = withTokenList(await fillDemo({ url, token, projectId: PROJECT }), storage)
  const pages = pagesBehind(url, servers)
  console.log(`\nThree servers are behind ${url}. Lines to try in another terminal:\n`)
  printRequests(demo)
  console.log('')
  for (const { url: own, running } of servers) console.log(`# One of the servers: ${own}, process ${running.child.pid}`)
  console.log('\nStop one of them ("kill", by its process number) and repeat a line.')
  printSignIn(pages)
  if (smoke) await tryAll(pages, demo)
  else await stopped
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  for (const cleanup of cleanups.toReversed()) await cleanup()
}

/** One line more, which needs no server: it reads the shared records. */
function withTokenList(demo: Demo, { place, env }: Pick<Cluster, 'place' | 'env'>): Demo {
  const [, records, , blobs] = place
  const settings = Object.entries({ STOWAGE_RECORDS: records, STOWAGE_BLOBS: blobs, ...env })
  const command = [
    `stowage() { node '${COMMAND}' "$@"; }`,
    `export ${settings.map(([name, value]) => `${name}='${value}'`).join(' ')}`,
    'stowage token list',
  ].join('\n')
  const request = {
    endpoint: 'stowage token list',
    explanation: 'a command beside the servers, and what it needs',
    command,
    prints: /^[0-9a-f]{32} {2}valid .* every project$/m,
  }
  return { ...demo, requests: [...demo.requests, request] }
}

/** A link that one server made signs in on all of them. */
function pagesBehind(url: string, [{ signInUrl = '' }]: readonly ClusterServer[]): DemoPages {
  const { pathname, search } = new URL(signInUrl)
  return { pagesUrl: `${url}/web`, signInUrl: `${url}${pathname}${search}` }
}
