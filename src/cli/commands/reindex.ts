import { hostname } from 'node:os'
import { Command, Option } from 'commander'
import { REAL_ENVIRONMENT } from '../../environment.ts'
import type { StorageBackend } from '../../storage/backend.ts'
import type { Finding } from '../../store/upkeep/finding.ts'
import { DAMAGE_EXIT_HELP, FindingsError } from '../common/exit.ts'
import { printFindings } from '../common/findings.ts'
import { durationSecondsOrNone, jsonOption } from '../common/options.ts'
import { printNote } from '../common/output.ts'
import { addStoragePlace, type StoragePlace } from '../common/shared-storage.ts'
import { withStorage } from '../common/storage.ts'

const EXAMPLES = `
Examples:
  stowage reindex                               after "stowage check" found damaged records
  stowage reindex --data /var/lib/stowage --json

First make a copy of the folder, or a backup of the shared records. Stop the server of a folder. Servers that share
their storage answer 503 meanwhile: writes at once, and everything from the moment at which the records are rebuilt.
They go on when the reindex has ended. If it is stopped after that moment, run it again: until then they answer nothing.
Removed projects stay removed; uploads that were never acknowledged may come back, and are reported.
${DAMAGE_EXIT_HELP}`

/** As long as a call of a server to its records may take. */
const DRAIN_SECONDS = 60

interface ReindexCommandOptions extends StoragePlace {
  readonly drain: number
  readonly json?: boolean
}

export function reindexCommand(): Command {
  return addStoragePlace(new Command('reindex'))
    .summary('rebuild the records from the packs')
    .description('Rebuild the records from the packs, if records are damaged or lost.')
    .addOption(
      new Option('--drain <duration>', 'how long calls of servers to shared records may still take')
        .argParser(durationSecondsOrNone)
        .default(DRAIN_SECONDS, '60s'),
    )
    .addOption(jsonOption('print one finding a line as JSON, {"summary": ...} last'))
    .addHelpText('after', EXAMPLES)
    .action(reindex)
}

async function reindex({ drain, json = false, ...place }: ReindexCommandOptions): Promise<void> {
  const { reindexStore } = await import('../../store/upkeep/reindex.ts')
  const { damage } = await import('../../store/upkeep/finding.ts')
  const { withMaintenance } = await import('../../storage/maintenance-lease.ts')
  const salvaged: Finding[] = []
  async function* findings(backend: StorageBackend): AsyncGenerator<Finding> {
    yield* salvaged
    yield* reindexStore(backend)
  }
  const options = {
    purpose: 'reindex',
    holder: `${hostname()}, process ${process.pid}`,
    drainMs: drain * 1_000,
    excludes: true,
    environment: REAL_ENVIRONMENT,
  } as const
  await withStorage(
    place,
    async (backend) => {
      if (backend.records.isShared === true)
        printNote(`waiting for the calls of servers to end, in two pauses of ${drain + 1} s`)
      const found = await withMaintenance(backend, options, (held) =>
        outcomeOf(printFindings(findings(held.backend), json)),
      )
      if (found !== undefined) throw found
    },
    (what) => salvaged.push(damage(undefined, 'database', what)),
  )
}

/** A reindex that found damage has done its work. */
async function outcomeOf(printing: Promise<void>): Promise<FindingsError | undefined> {
  try {
    await printing
    return undefined
  } catch (error) {
    if (error instanceof FindingsError) return error
    throw error
  }
}
