import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { ModelObject } from '../model/building.ts'
import type { Random } from '../model/random.ts'
import { type Ask, assertSame, downloadGraph, type SentModel } from './downloads.ts'

const PLAN_WAIT_MS = 60_000
const PLAN_LOOK_MS = 50

export function sentModel(objects: readonly ModelObject[]): SentModel {
  return { rootId: objects[objects.length - 1].id, texts: new Map(objects.map(({ id, json }) => [id, json])) }
}

/**
 * A later version of a model whose objects come children first and start with their id: one in `changedOneIn` gets
 * another text and so another id, as does whatever refers to it or counts it below itself. The ids are made as in the
 * models: from the text without its id.
 */
export function laterVersion(objects: readonly ModelObject[], changedOneIn: number, random: Random): ModelObject[] {
  const renamed = new Map<string, string>()
  return objects.map((object, at) => {
    const { id, json } = object
    const rest = json
      .slice(`{"id":"${id}",`.length)
      .replace(/"([0-9a-f]{32})"/g, (whole, named: string) => (renamed.has(named) ? `"${renamed.get(named)}"` : whole))
    const isChanged = at === objects.length - 1 || (!json.includes('"referencedId"') && random.oneIn(changedOneIn))
    const fields = isChanged ? `"revision":2,${rest}` : rest
    if (`{"id":"${id}",${fields}` === json) return object
    const newId = hash('sha256', `{${fields}`, 'hex').slice(0, 32)
    renamed.set(id, newId)
    return { id: newId, json: `{"id":"${newId}",${fields}` }
  })
}

/**
 * Downloads a version without the objects of an older one, by the older root alone and with its digest; throws if
 * anything else arrives. By the root alone everything arrives if the root had been stored before some objects below it,
 * as concurrent uploads may do: a client may hold less then.
 */
export async function verifyHave(ask: Ask, projectId: string, older: SentModel, newer: SentModel): Promise<void> {
  const expected = new Map([...newer.texts].filter(([id]) => id === newer.rootId || !older.texts.has(id)))
  const digest = (
    await downloadGraph(ask, `/objects/${projectId}/${older.rootId}`, { Accept: 'text/plain' }, older)
  ).headers.get('stowage-closure')
  assert.ok(digest, 'the answer for the older root has no digest of its closure')
  const names = [older.rootId, `${older.rootId}@${digest}`]
  for (const name of names) {
    for (const accept of ['text/plain', 'application/json']) {
      for (const coding of ['gzip', 'identity']) {
        const path = `/objects/${projectId}/${newer.rootId}?have=${name}`
        const { texts, headers } = await downloadGraph(ask, path, { Accept: accept, 'Accept-Encoding': coding }, newer)
        const outcome = headers.get('stowage-have')
        if (name !== older.rootId || outcome !== `${older.rootId};incomplete`)
          assert.equal(outcome, `${older.rootId};subtracted`)
        assertSame(texts, outcome?.endsWith('subtracted') ? expected : newer.texts, `${accept}, ${coding}, ${path}`)
      }
    }
  }
  const unknown = await downloadGraph(
    ask,
    `/objects/${projectId}/${newer.rootId}?have=not-there`,
    { Accept: 'text/plain' },
    newer,
  )
  assertSame(unknown.texts, newer.texts, 'an unknown root as have')
}

/** Waits until the response for a root comes from a plan. */
export async function untilPlanned(ask: Ask, path: string): Promise<void> {
  for (const deadline = performance.now() + PLAN_WAIT_MS; ;) {
    const { headers } = await ask(path, { headers: { Accept: 'text/plain', 'Accept-Encoding': 'gzip' } })
    if (headers.get('etag') !== null && headers.get('content-length') !== null) return
    assert.ok(performance.now() < deadline, `${path} has no plan after ${PLAN_WAIT_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, PLAN_LOOK_MS))
  }
}
