import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { Random } from '../../src/simulation/random.ts'
import { temporaryFolder } from '../support/folder.ts'
import { jsonUpload, openService, behindPort } from './served.ts'

const CLIENTS = 8
const ANSWERS_PER_CLIENT = 60
const ROOTS = ['text', 'noise', 'many']
/** The bytes of these are the same each time; an array that travels as gzip is compressed for each answer. */
const FORMS = [
  { Accept: 'text/plain', 'Accept-Encoding': 'gzip' },
  { Accept: 'text/plain', 'Accept-Encoding': 'identity' },
  { Accept: 'application/json', 'Accept-Encoding': 'identity' },
]
/** A slow client pauses so long after every piece. */
const PAUSE_MS = 3

/** Objects that compress well, objects that do not, and very small ones. */
function modelOf(rootId: string): object[] {
  const makes: Record<string, () => [count: number, text: string]> = {
    text: () => [3_000, 'wall of the second floor, '.repeat(60)],
    noise: () => [1_000, randomBytes(2_000).toString('base64')],
    many: () => [20_000, randomBytes(6).toString('hex')],
  }
  const [count] = makes[rootId]()
  const parts = Array.from({ length: count }, (_, number) => ({ id: `${rootId}-${number}`, text: makes[rootId]()[1] }))
  return [{ id: rootId, parts: parts.map(({ id }) => ({ referencedId: id })) }, ...parts]
}

test('no answer holds bytes of another, whether clients are slow, take a range or leave', async (t) => {
  const random = new Random(7)
  const service = openService({ backend: filesystemBackend({ path: temporaryFolder(t) }), memoryBytesMax: 48_000_000 })
  const { port } = await behindPort(t, service)
  const expected = new Map<string, Buffer>()
  for (const rootId of ROOTS) {
    await service.fetch(new Request('http://x/objects/p', jsonUpload(modelOf(rootId))))
    const url = `http://x/objects/p/${rootId}`
    // The first download makes the plan. Answers of the fetch core are never read into memory that is used again.
    await (await service.fetch(new Request(url, { headers: FORMS[0] }))).arrayBuffer()
    for (const [form, headers] of FORMS.entries()) {
      const answer = await service.fetch(new Request(url, { headers }))
      expected.set(`${rootId} ${form}`, Buffer.from(await answer.arrayBuffer()))
    }
  }
  let compared = 0
  const client = async (): Promise<void> => {
    for (let count = 0; count < ANSWERS_PER_CLIENT; count++) {
      const [rootId, form] = [random.pick(ROOTS), random.below(FORMS.length)]
      await download(`http://127.0.0.1:${port}/objects/p/${rootId}`, {
        form,
        whole: expected.get(`${rootId} ${form}`) as Buffer,
        manner: random.pick(['whole', 'whole', 'slow', 'range', 'leaves']),
        random,
      })
      compared++
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  assert.equal(compared, CLIENTS * ANSWERS_PER_CLIENT)
})

interface Download {
  /** Which of `FORMS`. */
  readonly form: number
  /** The bytes of the whole answer. */
  readonly whole: Buffer
  readonly manner: string
  readonly random: Random
}

/** Compares each piece when it comes. */
async function download(url: string, { form, whole, manner, random }: Download): Promise<void> {
  const start = manner === 'range' ? random.below(whole.length) : 0
  const end = manner === 'range' ? start + 1 + random.below(whole.length - start) : whole.length
  const leavesAt = manner === 'leaves' ? random.below(whole.length) : Infinity
  const range = manner === 'range' ? { Range: `bytes=${start}-${end - 1}` } : {}
  const [answer] = (await once(get(url, { headers: { ...FORMS[form], ...range } }), 'response')) as [IncomingMessage]
  assert.equal(answer.statusCode, manner === 'range' ? 206 : 200)
  let at = start
  for await (const piece of answer as AsyncIterable<Buffer>) {
    const isRight = piece.equals(whole.subarray(at, at + piece.length))
    assert.ok(isRight, `${url}, form ${form}, ${manner}: ${piece.length} bytes at ${at}`)
    at += piece.length
    if (at >= leavesAt) return
    if (manner === 'slow') await delay(PAUSE_MS)
  }
  assert.equal(at, end)
}
