import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'
import { eventually } from '../support/patience.ts'

interface PrintedKey {
  readonly purpose: string
  readonly id: string
  readonly state: string
  readonly validUntil: string | null
}

const PURPOSES = ['tokens', 'secrets', 'sessions']

async function tokenOf(data: string, ttl: string): Promise<string> {
  const { stdout } = await stowage(['token', '--data', data, '--project', 'demo', '--access', 'write', '--ttl', ttl])
  return stdout.trim()
}

async function keysOf(data: string): Promise<readonly PrintedKey[]> {
  const { stdout } = await stowage(['key', 'list', '--data', data, '--json'])
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as PrintedKey)
}

test('keys rotate beside a running server: old tokens stay valid until the end date, new ones at once', async (context) => {
  const data = newDataFolder(context)
  const { line } = await startServer(context, ['--data', data, '--json'])
  const { url } = JSON.parse(line) as { url: string }
  const statusWith = async (token: string): Promise<number> =>
    (await fetch(`${url}/api/v1/projects/demo/models`, { headers: { authorization: `Bearer ${token}` } })).status
  const before = await tokenOf(data, '2d')

  const rotated = await stowage(['key', 'rotate', '--data', data, '--valid-for', '1d'])
  assert.deepEqual([rotated.code, rotated.stderr], [0, ''])
  assert.match(
    rotated.stdout,
    /^tokens: .* is valid until \S+; tokens to issue again, because they were valid for longer: 1\n/,
  )
  assert.match(rotated.stdout, /\nsecrets: the new key is [0-9a-f]{16}; .*\nsessions: .* is valid until \S+\n$/)
  const after = await tokenOf(data, '1h')
  await eventually(async () => (await statusWith(after)) === 200, 'the new key counts without a restart')
  assert.equal(await statusWith(before), 200)

  const keys = await keysOf(data)
  assert.deepEqual(
    keys.map(({ purpose, state }) => `${purpose} ${state}`),
    PURPOSES.flatMap((purpose) => [`${purpose} current`, `${purpose} old`]),
  )
  const listed = await stowage(['key', 'list', '--data', data])
  assert.match(listed.stdout, /^tokens {4}[0-9a-f]{16} {2}current {2}since \S+\n/)

  const ended = await stowage(['key', 'rotate', '--data', data, '--key', 'tokens', '--valid-for', '0'])
  assert.match(
    ended.stdout,
    /^tokens: [^\n]* has ended; tokens to issue again, because they were valid for longer: 2\n$/,
  )
  await eventually(async () => (await statusWith(after)) === 401, 'tokens of ended keys are refused')
  assert.equal(await statusWith(before), 401)
  const last = await tokenOf(data, '1h')
  assert.equal(await statusWith(last), 200)
  assert.deepEqual((await stowage(['token', 'list', '--data', data])).stdout.match(/ valid /g)?.length, 1)
})

test('invalid rotations are refused', async (context) => {
  const data = newDataFolder(context)
  await tokenOf(data, '1h')
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['--valid-until', '2001-01-01'], /must lie ahead/],
    [['--valid-until', 'tomorrow'], /2027-01-31T12:00:00Z/],
    [['--valid-until', '2100-01-01', '--valid-for', '1d'], /cannot be used with option/],
    [['--valid-for', '5y'], /90s, 15m, 12h or 30d/],
    [['--key', 'token'], /must be tokens, secrets, sessions/],
    [['--data', join(data, 'none')], /there is no folder/],
  ]
  for (const [args, expected] of cases) {
    const { code, stdout, stderr } = await stowage(['key', 'rotate', '--data', data, ...args])
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, expected)
  }
  assert.deepEqual(
    (await keysOf(data)).map(({ state }) => state),
    ['current'],
  )
})
