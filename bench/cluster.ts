import { type Cluster, startBalancer, startCluster } from '../test/engines/cluster.ts'
import type { Ending } from '../test/support/folder.ts'
import { demoRequests } from './demo-requests.ts'
import { building } from './model/building.ts'
import { uploadModel } from './upload.ts'

/*
 * `npm run cluster`: PostgreSQL, an S3 store, three servers over both, and nginx that sends each request to the next
 * server, all on this machine and in temporary folders, with the demo model. Runs until Ctrl-C, then stops everything
 * and leaves nothing.
 */

const SERVERS = 3
const PROJECT = 'demo'
const MODEL_OBJECTS = 3_000

const cleanups: (() => void | Promise<void>)[] = []
const ending: Ending = { after: (cleanup) => cleanups.push(cleanup) }
const stopped = new Promise<void>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
})

try {
  console.log('Starting PostgreSQL, the S3 store, three servers and nginx ...')
  const cluster = await startCluster(ending, SERVERS)
  const url = await startBalancer(ending, cluster)
  const model = [...building({ objects: MODEL_OBJECTS })].flat()
  const target = { url, token: cluster.token, projectId: PROJECT }
  const { rootId, objects } = await uploadModel(target, [model])
  console.log(`Uploaded a model of ${objects} objects to project "${PROJECT}".`)
  printLines(cluster, url)
  const child = model.findLast(({ json }) => json.includes('"Objects.Data.DataObject"')) ?? model[0]
  for (const { endpoint, explanation, command } of demoRequests({
    projectId: PROJECT,
    rootId,
    childId: child.id,
    objects,
  }))
    console.log(`\n# ${endpoint}: ${explanation}\n${command}`)
  console.log('\nStop one server ("kill", by its process number) and repeat a line. Press Ctrl-C to stop everything.')
  await stopped
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  for (const cleanup of cleanups.toReversed()) await cleanup()
}

function printLines({ servers, place, env, token }: Cluster, url: string): void {
  console.log(`\nThree servers are behind ${url}. Lines to try in another terminal:\n`)
  console.log(`export STOWAGE=${url}\nexport TOKEN=${token}\n`)
  for (const { url: own, running } of servers) console.log(`# one of them: ${own}, process ${running.child.pid}`)
  const [, records, , blobs] = place
  console.log('\n# for the commands beside the servers, such as "npx stowage token list":')
  console.log(`export STOWAGE_RECORDS='${records}' STOWAGE_BLOBS='${blobs}'`)
  for (const [name, value] of Object.entries(env)) console.log(`export ${name}=${value}`)
}
