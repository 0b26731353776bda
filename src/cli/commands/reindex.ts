import { Command } from 'commander'
import type { StorageBackend } from '../../storage/backend.ts'
import type { Finding } from '../../store/upkeep/finding.ts'
import { DAMAGE_EXIT_HELP } from '../common/exit.ts'
import { printFindings } from '../common/findings.ts'
import { dataOption, jsonOption } from '../common/options.ts'
import { withExistingStorage } from '../common/storage.ts'

const EXAMPLES = `
Examples:
  stowage reindex                               after "stowage check" found damaged records
  stowage reindex --data /var/lib/stowage --json

First stop the server, and make a copy of the folder. Removed projects stay removed; uploads that were
never acknowledged may come back, and are reported.
${DAMAGE_EXIT_HELP}`

interface ReindexCommandOptions {
  readonly data: string
  readonly json?: boolean
}

export function reindexCommand(): Command {
  return new Command('reindex')
    .summary('rebuild the records from the packs')
    .description('Rebuild the records from the packs, if records are damaged or lost.')
    .addOption(dataOption())
    .addOption(jsonOption('print one finding a line as JSON, {"summary": ...} last'))
    .addHelpText('after', EXAMPLES)
    .action(reindex)
}

async function reindex({ data, json = false }: ReindexCommandOptions): Promise<void> {
  const { reindexStore } = await import('../../store/upkeep/reindex.ts')
  const { damage } = await import('../../store/upkeep/finding.ts')
  const salvaged: Finding[] = []
  async function* findings(backend: StorageBackend): AsyncGenerator<Finding> {
    yield* salvaged
    yield* reindexStore(backend)
  }
  await withExistingStorage(
    data,
    (backend) => printFindings(findings(backend), json),
    (what) => salvaged.push(damage(undefined, 'database', what)),
  )
}
