import assert from 'node:assert/strict'
import { closeSync, openSync } from 'node:fs'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { chunks, key, text } from './support.ts'

/* A process of its own, started with a low limit of open files: takes them all, sees what fails and how, lets go and sees that all goes on. */
const [kind, path] = process.argv.slice(2)
const { records, blobs, close } = kind === 'level' ? levelBackend({ path }) : filesystemBackend({ path })
await blobs.put('before', chunks('kept'))

const taken: number[] = []
try {
  for (;;) taken.push(openSync('/dev/null', 'r'))
} catch (error) {
  assert.equal((error as NodeJS.ErrnoException).code, 'EMFILE')
}
if (kind === 'filesystem') {
  const isTooManyFiles = (error: Error): boolean => (error.cause as NodeJS.ErrnoException).code === 'EMFILE'
  await assert.rejects(blobs.put('during', chunks('lost')), isTooManyFiles)
  await assert.rejects(blobs.read('before', 0, 4), isTooManyFiles)
}
// What is open already serves on.
await records.commit({ put: [{ key: key('during'), value: key('kept') }] })
for (const file of taken) closeSync(file)

assert.equal(text(await blobs.read('before', 0, 4)), 'kept')
assert.equal(text((await records.getMany([key('during')]))[0]), 'kept')
await blobs.put('during', chunks('again'))
assert.equal(text(await blobs.read('during', 0, 5)), 'again')
await close()
process.stdout.write('recovered\n')
