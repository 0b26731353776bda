import { folderCredentials } from '../../credentials/folder-credentials.ts'
import { Command, Option } from 'commander'
import { damagedCredentials } from '../../access/token-store.ts'
import type { StorageBackend } from '../../storage/backend.ts'
import type { Finding } from '../../store/upkeep/finding.ts'
import { DAMAGE_EXIT_HELP } from '../common/exit.ts'
import { printFindings } from '../common/findings.ts'
import { dataOption, jsonOption, positiveInteger } from '../common/options.ts'
import { withExistingStorage } from '../common/storage.ts'
import { KEY_PURPOSES, keyRingOf } from '../server/key-rings.ts'

const EXAMPLES = `
Examples:
  stowage check                                 read everything
  stowage check --data /var/lib/stowage         another folder
  stowage check --sample 20                     all tables and records, but only one in 20 blocks of objects
  stowage check --json | jq -c 'select(.severity == "damage")'

Nothing is changed. Stop the server of the folder first. There are two kinds of findings: "damage" means lost or
wrong data, and "note" is harmless, such as leftovers of a crash.
${DAMAGE_EXIT_HELP}`

interface CheckCommandOptions {
  readonly data: string
  readonly sample?: number
  readonly json?: boolean
}

export function checkCommand(): Command {
  return new Command('check')
    .summary('compare stored data with its checksums')
    .description('Read the stored data, compare it with its checksums, and check that every object can be found.')
    .addOption(dataOption())
    .addOption(new Option('--sample <n>', 'read one in n blocks instead of all').argParser(positiveInteger).default(1))
    .addOption(jsonOption('print one finding a line as JSON, {"summary": ...} last'))
    .addHelpText('after', EXAMPLES)
    .action(check)
}

async function check({ data, sample, json = false }: CheckCommandOptions): Promise<void> {
  const { checkAutomation } = await import('../../automation-server/upkeep/check.ts')
  const { checkStore } = await import('../../store/upkeep/check.ts')
  const { damage } = await import('../../store/upkeep/finding.ts')
  async function* findings(backend: StorageBackend): AsyncGenerator<Finding> {
    const rings = KEY_PURPOSES.map((purpose) => keyRingOf(purpose, folderCredentials(data)))
    for await (const message of damagedCredentials(folderCredentials(data), rings))
      yield damage(undefined, 'access', message)
    yield* checkStore(backend, { sampleEvery: sample })
    yield* checkAutomation(backend)
  }
  await withExistingStorage(data, (backend) => printFindings(findings(backend), json))
}
