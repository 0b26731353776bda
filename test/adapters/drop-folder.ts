import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { key } from './support.ts'

/*
 * A process of its own for the tests of data folders: opens the storage `kind` at `path`, writes one record, drops the
 * storage without closing it, and ends after several collections (`--expose-gc`).
 */
const COLLECTIONS = 10
const [kind, path] = process.argv.slice(2)

async function useOnce(): Promise<void> {
  const backend = kind === 'level' ? levelBackend({ path }) : filesystemBackend({ path })
  await backend.records.commit({ put: [{ key: key('dropped'), value: key('kept') }] })
}

await useOnce()
for (let i = 0; i < COLLECTIONS; i++) {
  await new Promise((resolve) => setTimeout(resolve, 5))
  globalThis.gc?.()
}
process.stdout.write(globalThis.gc ? 'collected\n' : 'no collector\n')
process.exit()
