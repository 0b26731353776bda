import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { ANSWER_BYTES } from '../../src/memory/answer-memory.ts'
import { MemoryBudget } from '../../src/memory/memory-budget.ts'
import type { Selection } from '../../src/object/selection.ts'
import { referTo, seeded } from './graphs.ts'
import { assertRight, filled, GRAPH, INNER, ROOT } from './planned.ts'
import { collected, download, never, type Opened, openStore, put } from './support.ts'

const random = seeded(80)

async function plannedSelection(
  { store }: Opened,
  root = ROOT,
): Promise<Selection & { readonly plan: NonNullable<Selection['plan']> }> {
  await download(store, 'demo', root)
  await store.idle()
  const selection = await store.closure('demo', root, { signal: never })
  assert.ok(selection?.plan !== undefined)
  return { ...methodsOf(selection), plan: selection.plan }
}

function methodsOf(selection: Selection): Selection {
  return {
    objects: selection.objects,
    missing: selection.missing,
    missingIds: (limit) => selection.missingIds(limit),
    lines: (options) => selection.lines(options),
    fragments: (options) => selection.fragments(options),
    release: () => selection.release(),
  }
}

test('a plan states every size before the first byte, and every range is exact', async () => {
  const opened = await filled()
  for (const root of [ROOT, INNER]) {
    const selection = await plannedSelection(opened, root)
    const { plan } = selection
    const whole = Buffer.concat(await collected(plan.stored(0, plan.storedBytes, { signal: never })))
    assert.equal(whole.length, plan.storedBytes)
    const lines = Buffer.concat(await collected(selection.lines({ signal: never })))
    assert.equal(lines.length, plan.rawBytes)
    const ends = [
      0,
      1,
      2,
      100,
      plan.storedBytes >> 1,
      plan.storedBytes - 1,
      plan.storedBytes,
      ...Array.from({ length: 40 }, () => random(plan.storedBytes)),
    ]
    for (const start of ends) {
      const end = start + random(plan.storedBytes - start + 1)
      const part = Buffer.concat(await collected(plan.stored(start, end, { signal: never })))
      assert.ok(part.equals(whole.subarray(start, end)), `${start} to ${end}`)
    }
    selection.release()
  }
  await opened.store.close()
})

test('every range of a small plan is exact', async () => {
  const opened = await openStore()
  await put(opened.store, 'demo', GRAPH.slice(0, 30))
  await put(opened.store, 'demo', GRAPH.slice(30, 60))
  const selection = await plannedSelection(opened, GRAPH[5].id)
  const { plan } = selection
  const whole = Buffer.concat(await collected(plan.stored(0, plan.storedBytes, { signal: never })))
  for (let start = 0; start <= whole.length; start += 7) {
    for (let end = start; end <= whole.length; end += 611) {
      assert.ok(
        Buffer.concat(await collected(plan.stored(start, end, { signal: never }))).equals(whole.subarray(start, end)),
      )
    }
  }
  selection.release()
  await opened.store.close()
})

test('lines start at any position, in text and in JSON', async () => {
  const opened = await filled()
  for (const root of [ROOT, INNER]) {
    const selection = await plannedSelection(opened, root)
    const text = Buffer.concat(await collected(selection.lines({ signal: never }))).toString('utf8')
    const lines = text.split('\n').slice(0, -1)
    const starts = { text: [0], json: [0] }
    for (const line of lines) {
      starts.text.push((starts.text.at(-1) as number) + Buffer.byteLength(line) + 1)
      starts.json.push((starts.json.at(-1) as number) + Buffer.byteLength(line.slice(line.indexOf('\t') + 1)) + 1)
    }
    assert.equal(starts.json.at(-1), selection.plan.rawBytes - selection.plan.idBytes - selection.objects)
    for (const unit of ['text', 'json'] as const) {
      const total = starts[unit].at(-1) as number
      for (const offset of [0, 1, total >> 1, total - 1, ...Array.from({ length: 10 }, () => random(total))]) {
        const { skip, lines: rest } = selection.plan.linesFrom(unit, offset, { signal: never })
        const first = starts[unit].indexOf(offset - skip)
        assert.ok(skip >= 0 && first !== -1, `${unit} ${offset}: an object begins at ${offset - skip}`)
        const got = Buffer.concat(await collected(rest)).toString('utf8')
        assert.equal(
          got,
          lines
            .slice(first)
            .map((line) => `${line}\n`)
            .join(''),
        )
      }
    }
    selection.release()
  }
  await opened.store.close()
})

test('a digest depends only on the bytes', async () => {
  const opened = await openStore()
  await put(opened.store, 'demo', [{ id: 'a', children: referTo(['b']) }])
  await put(opened.store, 'other', [{ id: 'a', children: referTo(['b']) }])
  const digestOf = async (project: string): Promise<string | undefined> => {
    await download(opened.store, project, 'a')
    await opened.store.idle()
    const selection = await opened.store.closure(project, 'a', { signal: never })
    selection?.release()
    return selection?.plan?.digest
  }
  const first = await digestOf('demo')
  assert.ok(first !== undefined && /^[0-9a-f]{32}$/.test(first))
  assert.equal(await digestOf('demo'), first)
  assert.equal(await digestOf('other'), first)
  await put(opened.store, 'demo', [{ id: 'b' }])
  assert.notEqual(await digestOf('demo'), first)
  await opened.store.close()
})

test('a response that stops early or is aborted frees its plan', async () => {
  const opened = await filled()
  const selection = await plannedSelection(opened)
  for await (const bytes of selection.plan.stored(0, selection.plan.storedBytes, { signal: never })) {
    assert.ok(bytes.length > 0)
    break
  }
  const controller = new AbortController()
  const reading = collected(selection.lines({ signal: controller.signal }))
  controller.abort(new Error('the client left'))
  await assert.rejects(reading, /the client left/)
  selection.release()
  selection.release()
  await assertRight(opened)
  await opened.store.close()
})

test('fragments of a plan are whole and inflate one by one', async () => {
  const opened = await filled()
  const selection = await plannedSelection(opened, INNER)
  const batches = await collected(selection.fragments({ signal: never }))
  const parts = batches.flat().map((fragment) => ('deflated' in fragment ? fragment.deflated : Buffer.alloc(0)))
  const gzip = Buffer.concat([Buffer.from('1f8b0800000000000003', 'hex'), ...parts, Buffer.from([3, 0])])
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(selection.plan.crc32, 0)
  trailer.writeUInt32LE(selection.plan.rawBytes, 4)
  assert.equal(gunzipSync(Buffer.concat([gzip, trailer])).length, selection.plan.rawBytes)
  selection.release()
  await opened.store.close()
})

test('answers that are sent at the same time lease the memory of their plan once', async () => {
  const { store } = await filled()
  await download(store, 'demo', ROOT)
  await store.idle()
  const budget = new MemoryBudget(10_000_000)
  const held: number[] = []
  const ends: (() => void)[] = []
  for (let answer = 0; answer < 3; answer++) {
    const selection = await store.closure('demo', ROOT, { signal: never })
    assert.ok(selection?.plan !== undefined)
    const memory = budget.open({ signal: never })
    await selection.lease?.(memory)
    held.push(budget.heldBytes)
    ends.push(() => {
      selection.release()
      memory.release()
    })
  }
  const planBytes = held[0] - ANSWER_BYTES
  assert.ok(planBytes > 0)
  assert.deepEqual(
    held,
    [1, 2, 3].map((answers) => planBytes + answers * ANSWER_BYTES),
  )
  for (const end of ends) {
    assert.ok(budget.heldBytes >= planBytes + ANSWER_BYTES)
    end()
  }
  assert.equal(budget.heldBytes, 0)
  await store.close()
})
