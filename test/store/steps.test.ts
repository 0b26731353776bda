import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createObjectService, type ObjectService, openAccess } from '../../src/index.ts'
import { type Environment, REAL_ENVIRONMENT } from '../../src/environment.ts'
import { IdSet } from '../../src/object/id-set.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { eventually } from '../support/patience.ts'

/*
 * How long a step holds the event loop cannot be measured on a machine that others use. So the clock of these tests says at each look that time is
 * up, and what is counted is the work between two turns: a few hundred ids take well below 1 ms.
 */

const CLAIMS = 100_000
/** A stretch of 512 ids, each of which is looked at up to three times, or 1,000 keys of one look-up. */
const IDS_IN_ONE_STEP_MAX = 2_048

class CountedSteps {
  longest = 0
  #ids = 0
  #nowMs = 0

  /** Counts what is done with ids, until the test is over. */
  constructor(t: TestContext) {
    const count = (): void => {
      this.longest = Math.max(this.longest, ++this.#ids)
    }
    const { prototype } = IdSet
    for (const name of ['add', 'addFrom', 'find', 'bytesAt', 'lengthAt', 'hashesAt'] as const) {
      const original = prototype[name] as (...args: unknown[]) => unknown
      Object.defineProperty(prototype, name, {
        configurable: true,
        value(this: IdSet, ...args: unknown[]) {
          count()
          return original.apply(this, args)
        },
      })
      t.after(() => Object.defineProperty(prototype, name, { configurable: true, writable: true, value: original }))
    }
  }

  get environment(): Environment {
    return {
      ...REAL_ENVIRONMENT,
      monotonicMs: () => (this.#nowMs += 1_000),
      nextTurn: () => this.#turned(),
      workTurn: () => this.#turned(),
    }
  }

  begin(): void {
    this.longest = 0
    this.#ids = 0
  }

  #turned(): Promise<void> {
    this.#ids = 0
    return REAL_ENVIRONMENT.nextTurn()
  }
}

/** A backend that counts the keys that are looked up. */
function counted(backend: StorageBackend): { readonly backend: StorageBackend; readonly keys: () => number } {
  let keys = 0
  const { getMany } = backend.records
  backend.records.getMany = (asked, options) => {
    keys += asked.length
    return getMany.call(backend.records, asked, options)
  }
  return { backend, keys: () => keys }
}

async function uploaded(service: ObjectService, text: string): Promise<void> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: text }
  const answer = await service.fetch(new Request('http://x/objects/p', init))
  assert.equal(answer.status, 200, await answer.text())
}

function wide(id: string, prefix: string): string {
  const claims = Array.from({ length: CLAIMS }, (_, n) => `"${prefix}${n}":1`)
  return `{"id":"${id}","__closure":{${claims.join()}}}`
}

test('very many absent claims are processed in short steps, without record lookups, and remembered', async (t) => {
  const steps = new CountedSteps(t)
  const { backend, keys } = counted(memoryBackend())
  const service = createObjectService({ backend, access: openAccess(), environment: steps.environment })
  t.after(() => service.close())
  await uploaded(service, `[${wide('root', 'absent')}]`)
  assert.ok(steps.longest <= IDS_IN_ONE_STEP_MAX, `the upload does ${steps.longest} things in one step`)
  for (let n = 0; n < 3; n++) await uploaded(service, `[{"id":"other-${n}"}]`)
  steps.begin()
  const before = keys()
  const ask = async (): Promise<Headers> => {
    const answer = await service.fetch(new Request('http://x/objects/p/root', { method: 'HEAD' }))
    assert.deepEqual([answer.status, answer.headers.get('stowage-objects')], [200, '1'])
    return answer.headers
  }
  await eventually(async () => (await ask()).has('etag'), 'a plan remembers what was found')
  assert.ok(steps.longest <= IDS_IN_ONE_STEP_MAX, `the walk does ${steps.longest} things in one step`)
  assert.ok(keys() - before < 1_000, `${keys() - before} keys were looked up`)
})

test('a claimed object is found anywhere, and a later one joins', async (t) => {
  const steps = new CountedSteps(t)
  const service = createObjectService({
    backend: memoryBackend(),
    access: openAccess(),
    environment: steps.environment,
  })
  t.after(() => service.close())
  await uploaded(service, '[{"id":"claimed7"},{"id":"stranger"}]')
  await uploaded(service, `[${wide('root', 'claimed')},{"id":"claimed12"}]`)
  await uploaded(service, '[{"id":"claimed99"}]')
  const objects = async (): Promise<string | null> =>
    (await service.fetch(new Request('http://x/objects/p/root', { method: 'HEAD' }))).headers.get('stowage-objects')
  assert.equal(await objects(), '4')
  await uploaded(service, `[{"id":"claimed${CLAIMS - 1}"}]`)
  assert.equal(await objects(), '5')
})
