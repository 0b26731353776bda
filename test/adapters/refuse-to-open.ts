import { closeSync, openSync } from 'node:fs'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'

/*
 * A process of its own that cannot open the storage `kind` at `path`, and prints the code and the message of the error. `how`: "files" takes all open
 * files first (the process was started with a low limit), "nobody" gives up the rights of the superuser.
 */
const [kind, path, how] = process.argv.slice(2)
const backend = kind === 'level' ? levelBackend({ path }) : filesystemBackend({ path })
if (how === 'nobody') process.setuid?.(65_534)
const taken: number[] = []
try {
  while (how === 'files') taken.push(openSync('/dev/null', 'r'))
} catch {
  // One stays free for what the system needs to say why.
  closeSync(taken.pop() as number)
}
const error: NodeJS.ErrnoException | undefined = await backend.ready?.().then(
  () => undefined,
  (reason: unknown) => reason as NodeJS.ErrnoException,
)
for (const file of taken) closeSync(file)
await backend.close()
process.stdout.write(`${error?.code} ${error?.message}\n`)
