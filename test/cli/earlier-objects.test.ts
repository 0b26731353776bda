import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EarlierObjects } from '../../src/cli/client/earlier-objects.ts'
import type { ObjectText } from '../../src/client/index.ts'

const OBJECTS = 20_000
const older: readonly ObjectText[] = Array.from({ length: OBJECTS }, (_, at) => ({
  id: `o${at}`,
  json: `{"id":"o${at}"}`,
}))
const known: ReadonlySet<string> = new Set(older.map(({ id }) => id))

async function* inBatches(objects: readonly ObjectText[]): AsyncGenerator<readonly ObjectText[]> {
  for (let at = 0; at < objects.length; at += 300) yield objects.slice(at, at + 300)
}

/** The ids of the newer file that the older one lacks, each with the one that is taken for what it was. */
async function guesses(newer: readonly string[]): Promise<Map<string, string | undefined>> {
  const earlier = new EarlierObjects(inBatches(older))
  const found = new Map<string, string | undefined>()
  for (const id of newer) {
    if (known.has(id)) await earlier.meet(id)
    else found.set(id, (await earlier.replaced())?.id)
  }
  await earlier.close()
  return found
}

test('objects between the same neighbours are matched, even if several adjacent ones differ', async () => {
  const newer = older.map(({ id }, at) => (at % 100 < 3 ? `new ${at}` : id))
  const found = await guesses(newer)
  assert.equal(found.size, OBJECTS * 0.03)
  for (const [id, base] of found) assert.equal(base, id.replace('new ', 'o'))
})

test('matching recovers quickly after inserted or removed objects', async () => {
  const newer = older.flatMap(({ id }, at) =>
    at % 500 === 10 ? [`more ${at}`, id] : at % 500 === 20 ? [] : at % 500 === 30 ? [`new ${at}`] : [id],
  )
  const found = await guesses(newer)
  for (const [id, base] of found) if (id.startsWith('new')) assert.equal(base, id.replace('new ', 'o'))
})

test('matching finds its place again after a long removed run', async () => {
  const newer = older
    .filter((_, at) => at < 3_000 || at > 9_000)
    .map(({ id }, at, all) => (at % 100 === 99 && at < all.length - 1 ? `new ${id.slice(1)}` : id))
  const found = await guesses(newer)
  const late = [...found].filter(([id]) => Number(id.slice(4)) > 17_000)
  assert.ok(late.length > 2)
  for (const [id, base] of late) assert.equal(base, id.replace('new ', 'o'))
})

test('a different order or a shorter older file gives few guesses and no error', async () => {
  await guesses(older.map(({ id }, at) => (at % 7 === 0 ? `new ${at}` : id)).toReversed())
  const found = await guesses(Array.from({ length: OBJECTS + 10 }, (_, at) => `new ${at}`))
  assert.equal([...found.values()].filter((base) => base === undefined).length, 10)
})
