import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createProgram } from '../../src/cli/program.ts'

const namesOf = async (firstArgument?: string): Promise<readonly string[]> =>
  (await createProgram({}, firstArgument)).commands.map((command) => command.name())

test('a command line loads the command that it names, and no other', async () => {
  const names = await namesOf()
  assert.ok(names.length > 20)
  for (const name of names) assert.deepEqual(await namesOf(name), name === 'completion' ? names : [name])
})

test('help, and whatever is no command, has all commands', async () => {
  const names = await namesOf()
  for (const argument of ['help', '--help', '--version', 'uplaod', 'constructor', ''])
    assert.deepEqual(await namesOf(argument), names, argument)
})
