import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { issueToken } from '../../src/access/token-store.ts'
import { COMMAND, newDataFolder, startServer, stowage } from '../cli/command.ts'
import { writeModel } from '../cli/model-file.ts'
import { codeBlocks } from '../support/markdown.ts'
import { contractOnly } from './contract-only.ts'

const OBJECTS = 3_000
const run = promisify(execFile)

async function server(t: TestContext): Promise<{ readonly url: string; readonly token: string }> {
  const data = newDataFolder(t)
  const projects = new Map([['house', 'write'] as const])
  const { token } = await issueToken(folderCredentials(data), { projects, subject: 'mover', ttlSeconds: 3_600 })
  const { line } = await startServer(t, ['--data', data, '--json'])
  return { url: (JSON.parse(line) as { readonly url: string }).url, token }
}

void test('the migration page moves versions, even two of one root, from a server with only the contract', async (t) => {
  const [old, next] = [await server(t), await server(t)]
  const folder = join(dirname(newDataFolder(t)), 'work')
  await mkdir(join(folder, 'bin'), { recursive: true })
  const versions = [join(folder, 'first.txt'), join(folder, 'second.txt')]
  const roots = [
    await writeModel(versions[0], { objects: OBJECTS }),
    await writeModel(versions[1], { objects: OBJECTS, revision: 1, changed: 30 }),
  ]
  for (const path of versions)
    await stowage(['upload', path, '--url', old.url, '--project', 'house', '--token', old.token])
  const filtered = await contractOnly(t, old.url)
  const moved = [...roots, roots[0]]
  const lines = moved.map((root, at) => `house\t${root}\tTown hall\tVersion ${at + 1}\n`)
  const [move, see] = await codeBlocks('migrate.md', 'bash')
  const files = {
    'models.txt': lines.join(''),
    'old-token.txt': old.token,
    'new-token.txt': next.token,
    'move.sh': move,
    'see.sh': see,
  }
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  await writeFile(join(folder, 'bin/npx'), npx())
  await chmod(join(folder, 'bin/npx'), 0o755)
  const env = {
    ...process.env,
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
    OLD_URL: filtered.url,
    NEW_URL: next.url,
  }
  const bash = async (script: string): Promise<string> => (await run('bash', [script], { cwd: folder, env })).stdout
  await bash('move.sh')
  assert.deepEqual(new Set(filtered.asked), new Set(roots.map((root) => `GET /objects/house/${root}`)))
  await bash('move.sh')
  assert.equal(filtered.asked.length, 3, 'a second run asks for nothing')
  assert.equal(await bash('see.sh'), moved.map((root) => `200 house ${root}\n`).join(''))
  const from = ['--url', next.url, '--project', 'house', '--token', next.token, '--quiet']
  for (const [at, path] of versions.entries()) {
    const copy = join(folder, `copy-${at}.txt`)
    assert.equal((await stowage(['download', roots[at], ...from, '-o', copy])).code, 0)
    assert.deepEqual(await sortedLines(copy), await sortedLines(path))
  }
  const listed = await stowage(['version', 'list', 'Town hall', ...from, '--json'])
  assert.deepEqual(messagesOf(listed.stdout), ['Version 3', 'Version 2', 'Version 1'], listed.stderr)
})

/** `npx stowage` is this command. */
function npx(): string {
  const quoted = [process.execPath, ...COMMAND].map((word) => `'${word}'`).join(' ')
  return `#!/bin/sh\nshift\nexec ${quoted} "$@"\n`
}

function messagesOf(json: string): string[] {
  return [...json.matchAll(/"message": ?"([^"]*)"/g)].map(([, message]) => message)
}

async function sortedLines(path: string): Promise<readonly string[]> {
  return (await readFile(path, 'utf8')).split('\n').sort()
}
