import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { COMMAND, startServer } from '../cli/command.ts'
import { freePort } from '../../bench/free-port.ts'
import { type Block, blocksOf } from '../docs/blocks.ts'
import { eventually } from '../support/patience.ts'
import { temporaryFolder } from '../support/folder.ts'

/* The commands of the README, as they are pasted. Only ports and the placeholder of the root are replaced. */

const run = promisify(execFile)
const blocks = blocksOf('README.md')

function blockThat(has: string): Block {
  return blocks.find(({ text }) => text.includes(has)) ?? assert.fail(`no block has ${has}`)
}

/** A folder where `npx stowage` is the command of this repository. */
function newFolder(t: TestContext): { readonly folder: string; readonly env: NodeJS.ProcessEnv } {
  const folder = temporaryFolder(t)
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const command = [process.execPath, ...COMMAND].map((word) => `'${word}'`).join(' ')
  writeFileSync(join(bin, 'npx'), `#!/bin/sh\n[ "$1" = stowage ] && shift && exec ${command} "$@"\n`)
  chmodSync(join(bin, 'npx'), 0o755)
  return { folder, env: { ...process.env, PATH: `${bin}:${process.env.PATH}` } }
}

test('the first server of the README runs as pasted, and so do its two requests', async (t) => {
  const port = String(await freePort())
  const server = blockThat('createServer(service.node).listen(8080')
  const requests = blockThat('curl http://127.0.0.1:8080')
  // Beside the compiled sources, where `stowage` is this package.
  const file = join(dirname(import.meta.dirname), `readme-${process.pid}.mjs`)
  writeFileSync(file, server.text.replace('8080', port))
  t.after(() => rmSync(file))
  const child = spawn(process.execPath, [file], { stdio: 'inherit' })
  t.after(() => child.kill('SIGKILL'))
  const exit = once(child, 'exit').then(() => assert.fail('the server ended'))
  exit.catch(() => undefined)
  const isUp = async (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    )
  await Promise.race([eventually(isUp, 'the server listens'), exit])
  const { stdout } = await run('bash', ['-ec', requests.text.replaceAll('8080', port)])
  const [, shown] = /# (\[.*\])$/m.exec(requests.text) ?? assert.fail('the page shows the answer')
  assert.ok(stdout.endsWith(shown), stdout)
  assert.match(stdout, /^\{"objects":2,"created":2,/)
})

test('"Run it" of the README serves, issues a token, uploads a model and downloads it', async (t) => {
  const { folder, env } = newFolder(t)
  const [serve, ...others] = blockThat('npx stowage serve --data ./data').text.split('\n')
  const port = String(await freePort())
  const options = serve.replace('npx stowage serve', '').replace(/#.*/, '').trim().split(/\s+/)
  const [, data] = options
  await startServer(t, ['--port', port, '--data', join(folder, data)])
  const script = others.map((line) => {
    const [command] = line.replaceAll('8642', port).split(/\s+#/)
    return command.startsWith('npx stowage upload ') ? `root="$(${command})"` : command.replace('<root>', '"$root"')
  })
  assert.ok(script.some((line) => line.includes('"$root"')))
  await run('bash', ['-ec', script.join('\n')], { cwd: folder, env })
  assert.equal(
    readFileSync(join(folder, 'model.txt'), 'utf8'),
    'house\t{"id":"house","front":{"referencedId":"door"}}\ndoor\t{"id":"door"}\n',
  )
})
