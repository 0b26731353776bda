import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { exportToFile } from '../../src/archive/index.ts'
import { withSecret } from '../archive/support.ts'
import { COMMAND, newDataFolder, startServer, stowage } from '../cli/command.ts'
import { blocksOf } from '../docs/blocks.ts'
import { temporaryFolder } from '../support/folder.ts'
import { buildModel, jsonArray } from '../support/model.ts'

const run = promisify(execFile)
const PAGE_URL = 'http://127.0.0.1:8642'

/** The lines of the page with this option of the command. */
function linesOf(option: string): string {
  const lines = blocksOf('docs/archive-format.md').flatMap(({ text }) => text.split('\n'))
  return lines.filter((line) => line.startsWith('stowage ') && line.includes(option)).join('\n')
}

function keyPair(): { readonly publicKey: string; readonly privateKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  return {
    publicKey: publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  }
}

const model = buildModel({ objects: 200, seed: 3 })

test('the commands of the archive page move a project and report their work', async (t) => {
  const data = newDataFolder(t)
  const folder = dirname(data)
  // The keys of the page, as `openssl` makes them.
  const { publicKey, privateKey } = keyPair()
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'secrets.pem'), privateKey)
  writeFileSync(join(folder, 'secrets-public.pem'), publicKey)
  const recipient = ['--secret-recipient', join(folder, 'secrets-public.pem')]
  const server = await startServer(t, ['--data', data, '--json', ...recipient])
  const { url } = JSON.parse(server.line) as { url: string }
  const issued = await stowage(['token', '--data', data, '--project', '*', '--access', 'write'])
  mkdirSync(join(folder, 'bin'))
  const command = [process.execPath, ...COMMAND].map((word) => `'${word}'`).join(' ')
  writeFileSync(join(folder, 'bin', 'stowage'), `#!/bin/sh\nexec ${command} "$@"\n`)
  chmodSync(join(folder, 'bin', 'stowage'), 0o755)
  writeFileSync(join(folder, 'token.txt'), issued.stdout)
  writeFileSync(join(folder, 'model.json'), jsonArray(model.objects))
  const env = {
    ...process.env,
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
    STOWAGE_URL: url,
    STOWAGE_TOKEN: issued.stdout.trim(),
  }
  const bash = (text: string): ReturnType<typeof run> => run('bash', ['-ec', text], { cwd: folder, env })
  await bash('stowage upload model.json --project demo --model House --message first --quiet')

  const shown = blocksOf('docs/archive-format.md').find(({ language }) => language === 'sh')
  const { stderr } = await bash((shown?.text ?? '').replaceAll(PAGE_URL, url))
  assert.match(String(stderr), /exported 200 objects to demo\.tar[^]*imported 200 objects, 200 of them new/)
  assert.match(String((await bash('stowage import --check demo.tar')).stderr), /1 archive verified, no damage/)
  await bash('stowage export copy -o copy.tar --quiet')
  const manifests = await Promise.all(
    ['demo.tar', 'copy.tar'].map((file) => bash(`tar --extract --to-stdout --file ${file} manifest.json`)),
  )
  assert.equal(String(manifests[1].stdout), String(manifests[0].stdout))
  await assert.rejects(bash('stowage export copy -o copy.tar'), /exists; choose another name/)

  const piped = await bash('stowage export demo -o - | tee piped.tar | stowage import - --project piped')
  assert.match(String(piped.stderr), /exported 200 objects to standard output[^]*imported 200 objects, 200 of them new/)
  assert.equal(piped.stdout, '')
  await bash('stowage import --check - < piped.tar && stowage import --check piped.tar')
  await assert.rejects(bash('head --bytes 5000 piped.tar | stowage import - --project cut'), {
    code: 1,
    stderr: /the archive that was streamed is not a complete archive: it is cut short/,
  })
  await assert.rejects(bash('stowage import - - --project piped < piped.tar'), /standard input \(-\) holds one archive/)
  await assert.rejects(bash('stowage export demo -o - --json'), /--json needs a file as --output/)
  const { stdout: extracted } = await bash('tar --extract --to-stdout --file piped.tar manifest.json')
  assert.equal(String(extracted), String(manifests[0].stdout))

  await bash(`stowage mirror --from ${url} --to ${url} --project demo --to-project mirrored \
    --from-token-file token.txt --to-token-file token.txt --quiet`)
  assert.match(String((await bash('stowage version list House --project mirrored')).stdout), /first/)

  const sealed = linesOf('--seal-secrets-for').replace('demo.tar', 'sealed.tar')
  assert.match(String((await bash(sealed)).stderr), /exported 200 objects/)
  await bash(linesOf('--secrets-key').replace('demo.tar', 'sealed.tar'))
  await assert.rejects(
    bash(sealed.replace('-o sealed', '-o other').replace('-public.pem', '.pem.absent')),
    /cannot be read/,
  )
  await assert.rejects(bash('stowage serve --secret-recipient token.txt'), /not a public key as PEM/)

  await server.stop()
  await bash(`stowage export demo -o offline.tar --data ${data} --quiet`)
  await bash('tar --extract --file demo.tar manifest.json && mv manifest.json first.json')
  await bash('tar --extract --file offline.tar manifest.json')
  assert.equal(
    await readFile(join(folder, 'manifest.json'), 'utf8'),
    await readFile(join(folder, 'first.json'), 'utf8'),
  )
})

test('an import names the automations that it disables because their secrets were left out', async (t) => {
  const folder = temporaryFolder(t)
  const [archive, keyFile] = [join(folder, 'house.tar'), join(folder, 'secrets.pem')]
  const { publicKey, privateKey } = keyPair()
  writeFileSync(keyFile, privateKey)
  const source = await withSecret(t, [publicKey])
  await exportToFile(source.address, archive, { sealSecretsFor: publicKey })
  const data = join(folder, 'data')
  const server = await startServer(t, ['--data', data, '--json'])
  const { url } = JSON.parse(server.line) as { url: string }
  const { stdout: token } = await stowage(['token', '--data', data, '--project', '*', '--access', 'write'])
  const env = { STOWAGE_URL: url, STOWAGE_TOKEN: token.trim() }
  const imported = (project: string, ...options: string[]): ReturnType<typeof stowage> =>
    stowage(['import', archive, '--project', project, '--quiet', ...options], env)

  const without = await imported('without')
  assert.equal(without.code, 0, without.stderr)
  const note = /^stowage: 1 automation disabled, because secrets were left out\. .*automations\/<id>: (.*)$/m.exec(
    without.stderr,
  )
  assert.equal(note?.[1], source.id)
  assert.match(note[0], /choose "Active" on the page of each, .* PATCH api\/v1\/projects\/without\/automations/)
  const asJson = await imported('json', '--json')
  assert.match(asJson.stderr, /1 automation disabled/)
  assert.deepEqual((JSON.parse(asJson.stdout) as { disabledAutomations: unknown }).disabledAutomations, [source.id])
  const withKey = await imported('with', '--secrets-key', keyFile)
  assert.equal(withKey.code, 0, withKey.stderr)
  assert.match(withKey.stderr, /^stowage: imported 1 object, /m)
  assert.doesNotMatch(withKey.stderr, /disabled/)
})

test('commands that move a project fail if there is none', async (t) => {
  const data = newDataFolder(t)
  const server = await startServer(t, ['--data', data, '--json'])
  const { url } = JSON.parse(server.line) as { url: string }
  const { stdout: token } = await stowage(['token', '--data', data, '--project', '*', '--access', 'write'])
  const output = join(dirname(data), 'nosuch.tar')
  const env = { STOWAGE_TOKEN: token.trim(), STOWAGE_FROM_TOKEN: token.trim(), STOWAGE_TO_TOKEN: token.trim() }
  for (const args of [
    ['export', 'nosuch', '-o', output, '--url', url],
    ['mirror', '--from', url, '--to', url, '--project', 'nosuch', '--to-project', 'copy'],
  ]) {
    const { code, stderr } = await stowage([...args, '--quiet'], env)
    assert.deepEqual([code, stderr], [1, `stowage: there is no project "nosuch" at ${url}\n`])
  }
  await assert.rejects(readFile(output), { code: 'ENOENT' })
})
