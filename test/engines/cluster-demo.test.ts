import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const CLUSTER = fileURLToPath(new URL('../../bench/cluster.ts', import.meta.url))

test('every line that "npm run cluster" prints works, and its models, versions, automations and link do', async (t) => {
  const child = spawn(process.execPath, [...process.execArgv, CLUSTER, '--smoke'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill())
  const [said, complained, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  assert.equal(code, 0, said.slice(-2_000) + complained)
  assert.match(said, /\nEvery line was tried and answered as it should\.\nThe link signs a browser in\.\n/)
})
