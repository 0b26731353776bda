import { fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  changedBlocks,
  changedTexts,
  checkingSeconds,
  comparing,
  compressingSeconds,
  inflatingSeconds,
  readingSeconds,
  type Version,
} from './changed-blocks.ts'

/** Until threads of V8 have ended their work for what came before. */
const SETTLING_MS = 1_000

interface Order {
  readonly versions: readonly Version[]
  readonly file: string
}

/** Processor time of what no delta can do without. */
export interface DeltaParts {
  readonly readingSeconds: number
  readonly inflatingSeconds: number
  readonly checkingSeconds: number
  readonly comparingSeconds: number
  readonly compressingSeconds: number
}

/**
 * Measures these in a process of its own, in which nothing of it has run before: V8 compiles it meanwhile, as it does for
 * the first delta of a server.
 */
export async function deltaParts(versions: readonly Version[], file: string): Promise<DeltaParts> {
  const child = fork(fileURLToPath(import.meta.url), ['delta-parts'])
  child.send({ versions, file } satisfies Order)
  const failed = once(child, 'exit').then(() => {
    throw new Error('the process that measures the parts of a delta has failed')
  })
  failed.catch(() => undefined)
  const [parts] = (await Promise.race([once(child, 'message'), failed])) as [DeltaParts]
  return parts
}

async function measure({ versions, file }: Order): Promise<DeltaParts> {
  const blocks = changedBlocks(versions)
  const texts = changedTexts(versions)
  writeFileSync(file, Buffer.concat(blocks.map(({ stored }) => stored)))
  await delay(SETTLING_MS)
  const reading = readingSeconds(blocks, file)
  const checking = checkingSeconds(blocks)
  const inflating = inflatingSeconds(blocks)
  const { seconds, lines } = comparing(texts)
  return {
    readingSeconds: reading,
    checkingSeconds: checking,
    inflatingSeconds: inflating,
    comparingSeconds: seconds,
    compressingSeconds: compressingSeconds(lines),
  }
}

async function answer(order: Order): Promise<void> {
  const parts = await measure(order)
  process.send?.(parts, () => process.disconnect())
}

if (process.argv[2] === 'delta-parts') process.once('message', (order: Order) => void answer(order))
