import { Command, Option } from 'commander'
import { damagedCredentials } from '../../access/token-store.ts'
import type { StorageBackend } from '../../storage/backend.ts'
import type { Finding } from '../../store/upkeep/finding.ts'
import { DAMAGE_EXIT_HELP } from '../common/exit.ts'
import { printFindings } from '../common/findings.ts'
import { jsonOption, positiveInteger } from '../common/options.ts'
import { addStoragePlace, credentialsOf, isShared, type StoragePlace } from '../common/shared-storage.ts'
import { withStorage } from '../common/storage.ts'
import { KEY_PURPOSES, keyRingOf } from '../server/key-rings.ts'

const EXAMPLES = `
Examples:
  stowage check                                 read everything
  stowage check --data /var/lib/stowage         another folder
  stowage check --sample 20                     all tables and records, but only one in 20 blocks of objects
  stowage check --json | jq -c 'select(.severity == "damage")'

Nothing is changed. Stop the server of a folder first; servers that share their storage go on, and what they change
meanwhile is told from damage by a second look. There are two kinds of findings: "damage" means lost or wrong data, and
"note" is harmless, such as leftovers of a crash.
${DAMAGE_EXIT_HELP}`

interface CheckCommandOptions extends StoragePlace {
  readonly sample?: number
  readonly json?: boolean
}

export function checkCommand(): Command {
  return addStoragePlace(new Command('check'))
    .summary('compare stored data with its checksums')
    .description('Read the stored data, compare it with its checksums, and check that every object can be found.')
    .addOption(new Option('--sample <n>', 'read one in n blocks instead of all').argParser(positiveInteger).default(1))
    .addOption(jsonOption('print one finding a line as JSON, {"summary": ...} last'))
    .addHelpText('after', EXAMPLES)
    .action(check)
}

async function check({ sample, json = false, ...place }: CheckCommandOptions): Promise<void> {
  const { checkAutomation } = await import('../../automation-server/upkeep/check.ts')
  const { checkStore } = await import('../../store/upkeep/check.ts')
  const { confirmedFindings } = await import('../../store/upkeep/check-running.ts')
  const { damage } = await import('../../store/upkeep/finding.ts')
  const isRunning = isShared(place)
  async function* findings(backend: StorageBackend): AsyncGenerator<Finding> {
    const { credentials } = credentialsOf(place, isRunning ? backend.records : undefined)
    const rings = KEY_PURPOSES.map((purpose) => keyRingOf(purpose, credentials))
    for await (const message of damagedCredentials(credentials, rings)) yield damage(undefined, 'access', message)
    yield* checkStore(backend, { sampleEvery: sample, isRunning })
    yield* checkAutomation(backend)
  }
  await withStorage(place, (backend) =>
    printFindings(isRunning ? confirmedFindings(() => findings(backend)) : findings(backend), json),
  )
}
