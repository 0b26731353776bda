import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { key } from './support.ts'

/*
 * A process of its own for the tests of data folders: opens the storage `kind` at `path`, writes one record, says "held" and stays until it is killed.
 */
const [kind, path] = process.argv.slice(2)
const backend = kind === 'level' ? levelBackend({ path }) : filesystemBackend({ path })
await backend.ready?.()
await backend.records.commit({ put: [{ key: key('of the holder'), value: key('kept') }] })
process.stdout.write('held\n')
setInterval(() => undefined, 60_000)
