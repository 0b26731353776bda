import assert from 'node:assert/strict'
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { REPOSITORY } from '../../bench/repository.ts'
import { COMMAND, stowage } from '../cli/command.ts'
import { type Ending, temporaryFolder } from '../support/folder.ts'

const OTHER_VERSION = '0.0.1'

/**
 * The command of another build with the same format of storage: of the package in the folder that
 * `STOWAGE_TEST_OLDER_PACKAGE` names, or a copy of this build under another version.
 */
export async function olderCommand(ending: Ending): Promise<readonly string[]> {
  const installed = process.env.STOWAGE_TEST_OLDER_PACKAGE
  if (installed !== undefined) return [join(installed, 'dist', 'src', 'cli', 'stowage.cjs')]
  const folder = temporaryFolder(ending)
  const compiled = dirname(dirname(dirname(COMMAND[COMMAND.length - 1])))
  for (const name of ['src', 'adapters']) cpSync(join(compiled, name), join(folder, name), { recursive: true })
  symlinkSync(join(REPOSITORY, 'node_modules'), join(folder, 'node_modules'))
  const manifest = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as object
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, version: OTHER_VERSION }))
  const command = [...COMMAND.slice(0, -1), join(folder, 'src', 'cli', 'main.js')]
  const { stdout, stderr } = await stowage(['--version'], {}, command)
  assert.equal(stdout.trim(), OTHER_VERSION, stderr)
  return command
}
