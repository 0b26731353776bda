import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { copyStorage } from '../../src/cli/client/copy-storage.ts'
import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import { dyingBackend } from './dying-backend.ts'

/** A copy in a process of its own, which dies by SIGKILL: `<source> <target> <changes of the target until then>`. */
const [from, to, changes] = process.argv.slice(2)
const { backend, dieAfter } = dyingBackend(filesystemBackend({ path: to }))
dieAfter(Number(changes))
const source = filesystemBackend({ path: from })
await copyStorage(
  { backend: source, credentials: folderCredentials(from), place: from },
  { backend, credentials: folderCredentials(to), place: to },
  { drainMs: 0, retry: false, signal: new AbortController().signal, onProgress: () => undefined },
)
await Promise.all([source.close(), backend.close()])
