import assert from 'node:assert/strict'
import type { Command } from 'commander'
import { test } from 'node:test'
import { withoutOwnSettings } from '../../bench/own-settings.ts'
import { createProgram } from '../../src/cli/program.ts'

function variablesOf(command: Command): readonly string[] {
  return [...command.options.flatMap(({ envVar }) => envVar ?? []), ...command.commands.flatMap(variablesOf)]
}

test('servers of tests and benchmarks inherit nothing that takes the place of an option', async () => {
  const variables = [...variablesOf(await createProgram()), 'STOWAGE_SEALING_KEY']
  assert.ok(variables.includes('STOWAGE_RECORDS') && variables.includes('STOWAGE_TO_SEALING_KEY_FILE'))
  const env = Object.fromEntries(variables.map((name) => [name, 'of the user']))
  assert.deepEqual(withoutOwnSettings({ ...env, PATH: '/bin', STOWAGE_TEST_SHARED: '1' }), {
    PATH: '/bin',
    STOWAGE_TEST_SHARED: '1',
  })
})
