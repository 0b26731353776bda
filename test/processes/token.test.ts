import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CommanderError } from 'commander'
import { claimAuthorize, type Principal } from '../../src/access/access.ts'
import { storedAccess, listTokens } from '../../src/access/token-store.ts'
import { createProgram } from '../../src/cli/program.ts'
import { newDataFolder, stowage } from '../cli/command.ts'

async function principalOf(folder: string, token: string): Promise<Principal | undefined> {
  const headers = new Headers({ authorization: `Bearer ${token}` })
  return (await storedAccess(folderCredentials(folder))).authenticate({
    headers,
    method: 'GET',
    path: '/',
    host: undefined,
  })
}

test('two concurrent first uses print tokens of one key, each alone on stdout', async (context) => {
  const folder = newDataFolder(context)
  const outcomes = await Promise.all([
    stowage([
      'token',
      '--data',
      folder,
      '--project',
      'demo',
      '--project',
      '__proto__',
      '--access',
      'read',
      '--ttl',
      '2h',
    ]),
    stowage(['token', '--project', '*', '--access', 'write', '--subject', 'ada', '--json'], { STOWAGE_DATA: folder }),
  ])
  assert.deepEqual(
    outcomes.map(({ code }) => code),
    [0, 0],
  )
  assert.match(outcomes[0].stdout, /^[\w.-]+\n$/)
  assert.match(outcomes[0].stderr, /^stowage: token [0-9a-f]{32} may read "demo", "__proto__" until .*\n$/)
  const reader = await principalOf(folder, outcomes[0].stdout.trim())
  assert.ok(reader)
  assert.deepEqual(
    ['demo', '__proto__', 'other'].map((id) => claimAuthorize(reader, id, 'read')),
    [true, true, false],
  )
  assert.equal(claimAuthorize(reader, 'demo', 'write'), false)
  const printed = JSON.parse(outcomes[1].stdout) as { token: string; jti: string }
  const writer = await principalOf(folder, printed.token)
  assert.ok(writer)
  assert.deepEqual([writer.subject, writer.tokenId, claimAuthorize(writer, 'any', 'write')], ['ada', printed.jti, true])
  const lifetimes = (await listTokens(folderCredentials(folder))).map(
    ({ issuedAt, expiresAt }) => (Date.parse(expiresAt) - Date.parse(issuedAt)) / 3_600_000,
  )
  assert.deepEqual(
    lifetimes.sort((a, b) => a - b),
    [2, 30 * 24],
  )
  if (process.platform !== 'win32')
    assert.deepEqual(
      [statSync(join(folder, 'access')).mode & 0o777, statSync(join(folder, 'access/key')).mode & 0o777],
      [0o700, 0o600],
    )
})

test('an invalid command line gives one line with the correct form, and exit code 2', async (context) => {
  const folder = newDataFolder(context)
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['tokn'], /unknown command 'tokn' \(Did you mean token\?\)/],
    [['token', '--projekt', 'a'], /unknown option '--projekt' \(Did you mean --project\?\)/],
    [['token', 'lsit'], /"lsit" is not a command of "stowage token"/],
    [['token', '--access', 'read'], /--project is missing/],
    [['token', '--project', 'a'], /--access is missing/],
    [['token', '--project', 'a', '--access', 'admin'], /read, write/],
    [['token', '--project', 'a', '--access', 'read', '--ttl', '5y'], /90s, 15m, 12h or 30d/],
    [['token', 'list', 'all'], /too many arguments/],
    [['token', 'revoke'], /missing required argument 'jti'/],
    [['serve', '--port', '65536'], /0 \(any free port\) to 65535/],
    [['serve', '--object-bytes-max', '1e3'], /whole number/],
    [['serve', '--storage', 'tape'], /filesystem, level, memory/],
    [['serve', '--upload-status', '204'], /200, 201/],
    [['check', '--sample', '0'], /whole number of 1 or more/],
    [['project', 'remove'], /missing required argument 'project'/],
    [['token', 'list', '--data', ''], /must be the name of a folder/],
    [['ls', '--data', ''], /must be the name of a folder/],
  ]
  for (const [args, expected] of cases) {
    const printed = await parse([...args, ...(args[0] === 'token' || args[0] === 'tokn' ? [] : ['--data', folder])])
    assert.deepEqual([printed.exitCode, printed.out], [1, ''], args.join(' '))
    assert.match(printed.err, /^stowage: [^\n]+ \(see "stowage[a-z ]* --help"\)\n$/)
    assert.match(printed.err, expected)
  }
  const spawned = await Promise.all([
    stowage(['tokn']),
    stowage(['token', '--data', folder, '--project', 'a\nb', '--access', 'read']),
    stowage(['token', 'list', '--data', join(folder, 'none')]),
  ])
  for (const { code, stdout, stderr } of spawned) {
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /^stowage: [^\n]+\n$/)
  }
})

test('every command explains itself by examples', async () => {
  for (const command of [
    '',
    'serve',
    'token',
    'token issue',
    'token list',
    'token revoke',
    'key',
    'key rotate',
    'key list',
    'project',
    'project list',
    'project remove',
    'check',
    'reindex',
    'upload',
    'download',
    'has',
    'get',
    'ls',
  ]) {
    const { exitCode, out, err } = await parse([...command.split(' ').filter((word) => word !== ''), '--help'])
    assert.deepEqual([exitCode, err], [0, ''], command)
    assert.match(out, new RegExp(`Examples?:\n  stowage ${command.replace(' issue', '')}`))
  }
})

/** What the parser prints about a command line that does not get as far as running. */
async function parse(args: readonly string[]): Promise<{ exitCode: number; out: string; err: string }> {
  let [out, err] = ['', '']
  const program = await createProgram({
    writeOut: (text) => {
      out += text
    },
    writeErr: (text) => {
      err += text
    },
  })
  const error: unknown = await program.parseAsync(args, { from: 'user' }).catch((error: unknown) => error)
  assert.ok(error instanceof CommanderError, `${args.join(' ')} ran`)
  return { exitCode: error.exitCode, out, err }
}
