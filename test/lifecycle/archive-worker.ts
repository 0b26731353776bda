import { backupServer } from '../../src/archive/backup.ts'
import { exportToFile } from '../../src/archive/export-file.ts'
import { importFiles } from '../../src/archive/import-file.ts'
import { mirrorProject } from '../../src/archive/mirror.ts'
import type { ProjectAddress } from '../../src/archive/remote.ts'
import type { Work } from './work.ts'

/** One export, import, mirror or backup in a process of its own. Tells its parent of each step. */
const work = JSON.parse(process.argv[2]) as Work
const RETRY = { retryForMs: 60_000, delayMs: 50, delayMsMax: 400 }
const address = (url: string, projectId: string): ProjectAddress => ({ url, token: undefined, projectId, retry: RETRY })
const onProgress = (): void => void process.send?.('step')

process.send?.('step')
process.on('disconnect', () => process.exit(1))
const { from, to, project, copy, path } = work
if (work.kind === 'export') await exportToFile(address(from, project), path, { onProgress })
if (work.kind === 'import') await importFiles(address(to, copy), [path], { onProgress })
if (work.kind === 'mirror') await mirrorProject(address(from, project), address(to, copy), { onProgress })
if (work.kind === 'backup') await backupServer({ url: from, token: undefined, retry: RETRY }, path, { onProgress })
process.exit(0)
