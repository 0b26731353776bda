import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { postBatch, type Target } from './upload.ts'

/*
 * The client of the upload benchmark, a process of its own on the same cores: sends bodies that were compressed beforehand, some at a time,
 * and prints the seconds between the first request and the last answer.
 */

/** Sends every file of a folder as one upload each; resolves with the seconds it took. */
export async function sendFolder(target: Target, folder: string, concurrency: number): Promise<number> {
  const settings = JSON.stringify({ target, folder, concurrency })
  const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), settings], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`the sender ended with code ${code}`)
  return Number(printed)
}

async function send({
  target,
  folder,
  concurrency,
}: {
  readonly target: Target
  readonly folder: string
  readonly concurrency: number
}): Promise<void> {
  const names = (await readdir(folder)).sort()
  const bodies = await Promise.all(names.map((name) => readFile(join(folder, name))))
  const started = performance.now()
  const sendOne = async (): Promise<void> => {
    for (let body = bodies.shift(); body !== undefined; body = bodies.shift()) await postBatch(target, body)
  }
  await Promise.all(Array.from({ length: concurrency }, sendOne))
  console.log((performance.now() - started) / 1_000)
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await send(JSON.parse(process.argv[2]) as Parameters<typeof send>[0])
