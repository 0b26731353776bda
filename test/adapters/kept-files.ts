import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { chunks, text } from './support.ts'

/* A process of its own, started with a limit of 2,048 open files: it keeps an eighth of them open, and none once they are closed. */
const [path] = process.argv.slice(2)
const FILES = 400
const OPEN_MAX = 256

const openFiles = async (): Promise<number> => (await readdir('/dev/fd')).length
const { blobs, close } = filesystemBackend({ path })
await blobs.put('warm', chunks('up'))
const before = await openFiles()
await Promise.all(Array.from({ length: FILES }, async (_, at) => blobs.put(`many/${at}`, chunks(String(at)))))
for (let at = 0; at < FILES; at++) assert.equal(text(await blobs.read(`many/${at}`, 0, String(at).length)), String(at))
assert.ok((await openFiles()) <= before + OPEN_MAX)
await blobs.remove(Array.from({ length: FILES }, (_, at) => `many/${at}`))
assert.ok((await openFiles()) <= before)
await close()
assert.ok((await openFiles()) < before)
process.stdout.write('closed\n')
