import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../../src/client/index.ts'
import { COMMAND } from '../cli/command.ts'
import { olderCommand } from './older-build.ts'
import { startBalancer, startCluster, startOne } from './cluster.ts'

/** At a time, each with a connection of its own. */
const CLIENTS = 4
const CHILDREN = 20

test('servers behind nginx that are upgraded one after the other, and one goes back, fail no client', async (t) => {
  const older = await olderCommand(t)
  const cluster = await startCluster(t, 3, { command: older })
  const { servers, token } = cluster
  const url = await startBalancer(t, cluster)
  const load = { isOn: true, models: 0 }
  const clients = Array.from({ length: CLIENTS }, async (_, at) => {
    const project = createClient({ url, token }).project('house')
    for (let count = 0; load.isOn; count++) {
      const name = `${at}-${count}`
      const children = Array.from({ length: CHILDREN }, (_child, number) => ({ id: `${name}-${number}`, number }))
      const root = { id: name, parts: children.map(({ id }) => ({ speckle_type: 'reference', referencedId: id })) }
      await project.upload([...children, root])
      const ids: string[] = []
      for await (const objects of project.graph(name)) ids.push(...objects.map(({ id }) => id))
      assert.deepEqual(ids.toSorted(), [name, ...children.map(({ id }) => id)].toSorted())
      load.models++
    }
  })
  const working = Promise.all(clients)
  working.catch(() => undefined)
  const restarting = (async () => {
    const upgrades = servers.map((server) => ({ server, command: COMMAND }))
    for (const { server, command } of [...upgrades, { server: servers[0], command: older }]) {
      const { code, stderr } = await server.running.stop('SIGTERM')
      assert.equal(code, 0, stderr)
      const args = ['--port', new URL(server.url).port]
      server.running = (await startOne(t, cluster, { args, command })).running
    }
  })()
  try {
    await Promise.race([restarting, working])
  } finally {
    load.isOn = false
  }
  await restarting
  await working
  t.diagnostic(`${load.models} models went up and down meanwhile`)
  assert.ok(load.models >= CLIENTS)
})
