import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { REPOSITORY } from '../../bench/repository.ts'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'

/** The program, which `.ci/run` installs. */
const SCHEMATHESIS = process.env.STOWAGE_TEST_SCHEMATHESIS ?? 'schemathesis'
/** For each of some eighty operations, beside the cases that are made of bounds and examples. */
const EXAMPLES = process.env.STOWAGE_SCHEMATHESIS_EXAMPLES ?? '3'

test('Schemathesis finds no fault, with all checks on', async (t) => {
  const folder = newDataFolder(t)
  const server = await startServer(t, ['--data', folder, '--storage', 'memory', '--json', '--log-level', 'error'])
  const { url } = JSON.parse(server.line) as { readonly url: string }
  const issued = await stowage(['token', '--data', folder, '--project', '*', '--access', 'write'])
  const settings = join(REPOSITORY, 'test', 'schemathesis', 'schemathesis.toml')
  // All checks are on by default. Named here, they would be on where the settings say why one is not.
  const args = [
    ['--config-file', settings, 'run', `${url}/api/openapi.json`],
    ['--header', `Authorization: Bearer ${issued.stdout.trim()}`],
    ['--phases', 'examples,coverage,fuzzing'],
    ['--max-examples', EXAMPLES],
    ['--request-timeout', '20'],
    ['--suppress-health-check', 'all'],
    ['--continue-on-failure', '--no-color'],
  ].flat()
  const hooks = join(REPOSITORY, 'test', 'schemathesis', 'hooks.py')
  const child = spawn(SCHEMATHESIS, args, {
    cwd: folder.replace(/\/[^/]*$/, ''),
    env: { ...process.env, SCHEMATHESIS_HOOKS: hooks },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [printed, complained, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  t.diagnostic(/\d+ generated[^\n]*/.exec(printed)?.[0] ?? 'no cases')
  assert.equal(code, 0, `${printed}\n${complained}`)
  const { stderr } = await server.stop()
  assert.equal(stderr, '', 'the server has nothing to complain of')
})
