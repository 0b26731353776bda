import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longWorkAnswer } from '../../src/automation-server/http/long-work.ts'
import { StowageError } from '../../src/errors.ts'

const { signal } = new AbortController()

async function linesOf(body: unknown): Promise<unknown[]> {
  let text = ''
  for await (const chunk of body as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString()
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
}

test('short work returns only its report', async () => {
  const { status, body } = await longWorkAnswer({
    work: async (onProgress: (progress: number) => void) => {
      onProgress(1)
      return { done: true }
    },
    signal,
    onError: () => assert.fail('nothing failed'),
  })
  assert.equal(status, 200)
  assert.deepEqual(await linesOf(body), [{ report: { done: true } }])
})

test('work that fails soon has the status of its failure', async () => {
  await assert.rejects(
    longWorkAnswer({
      work: () => Promise.reject(new StowageError('not_found', 'there is none')),
      signal,
      onError: () => assert.fail('the answer has not begun'),
    }),
    { code: 'not_found' },
  )
})

test('longer work reports its progress, and its failure in the last line and in the log', async () => {
  const failures: StowageError[] = []
  let tell: (progress: number) => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  const { body } = await longWorkAnswer({
    work: (onProgress: (progress: number) => void) => {
      tell = onProgress
      return new Promise<never>((_resolve, reject) => (fail = reject))
    },
    signal,
    onError: (error) => failures.push(error),
  })
  const lines = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
  const first = lines.next()
  tell(7)
  assert.deepEqual(JSON.parse(Buffer.from((await first).value as Uint8Array).toString()), { progress: 7 })
  const last = lines.next()
  fail(new Error('of the storage'))
  assert.deepEqual(JSON.parse(Buffer.from((await last).value as Uint8Array).toString()), {
    error: { message: 'the request failed inside the server', statusCode: 500, code: 'internal' },
  })
  assert.equal((await lines.next()).done, true)
  assert.deepEqual(
    failures.map(({ code }) => code),
    ['internal'],
  )
})
