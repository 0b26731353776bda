import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { freePort } from '../../bench/free-port.ts'
import { newDataFolder, spawnCommand } from '../cli/command.ts'
import { eventually } from '../support/patience.ts'
import { listenUntilEnd } from '../support/listen.ts'

/* A command that has to wait for a database or a store says so. Nobody waits here until it gives up. */

test('a command says that PostgreSQL refuses connections, for how long it waits, and says it once', async (t) => {
  const records = `postgres://nobody:hidden@127.0.0.1:${await freePort()}/none`
  const child = spawnCommand(['token', 'list', '--records', records, '--blobs', 'file:blobs'], {
    STOWAGE_SEALING_KEY: 'a'.repeat(64),
  })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  await eventually(() => said.includes('\n'), 'the command says that it waits')
  const [, port] = /:(\d+)\/none/.exec(records) ?? []
  assert.equal(
    said,
    `stowage: no answer yet from PostgreSQL at 127.0.0.1:${port}/none, schema stowage; waiting for up to 30 s\n`,
  )
})

test('a server that starts says in its log that the S3 store does not answer', async (t) => {
  const { port } = await listenUntilEnd(
    t,
    createServer(() => undefined),
  )
  const data = newDataFolder(t)
  const place = ['--records', `level:${data}-records`, '--blobs', `s3://models?endpoint=http://127.0.0.1:${port}`]
  const child = spawnCommand(['serve', '--port', '0', '--data', data, ...place, '--log-format', 'json'], {
    AWS_ACCESS_KEY_ID: 'a',
    AWS_SECRET_ACCESS_KEY: 'b',
  })
  t.after(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  await eventually(() => said.includes('\n'), 'the server says that it waits')
  const { level, message } = JSON.parse(said) as { readonly level: string; readonly message: string }
  assert.equal(level, 'warn')
  assert.match(message, /^no answer yet from bucket models at http:\/\/127\.0\.0\.1:\d+; waiting for up to 1 min 35 s$/)
})
