import assert from 'node:assert/strict'
import {
  batchesOf,
  casesOf,
  type ConformanceCase,
  type ConformanceOptions,
  freshPrefix,
  type Opener,
  type Rule,
  same,
  type Session,
} from './case.ts'
import type { ObjectRecord } from '../../object/line.ts'
import type { ObjectStore } from '../../store/plain/object-store.ts'

/** The number of ids for which the core asks in one call. */
const IDS_PER_CALL = 1_000

interface ClosableStore extends ObjectStore {
  close(): Promise<void>
}

/** The context of a rule; its projects are its own. */
class ObjectContext {
  readonly #session: Session<ClosableStore>
  readonly project: string = freshPrefix()

  constructor(session: Session<ClosableStore>) {
    this.#session = session
  }

  get store(): ObjectStore {
    return this.#session.store
  }

  async put(objects: readonly ObjectRecord[], project: string = this.project): Promise<number> {
    return (await this.store.put(project, inBatches(objects), live())).inserted
  }

  /** The texts by their ids. Fails for a repeated object. */
  async texts(ids: readonly string[], project: string = this.project): Promise<Record<string, string>> {
    const texts: Record<string, string> = {}
    for (const { id, json } of await batchesOf(this.store.get(project, ids, live()))) {
      assert.ok(!(id in texts), `get gave ${id} twice; it must give each object once`)
      texts[id] = Buffer.from(json).toString()
    }
    return texts
  }
}

function live(): { readonly signal: AbortSignal } {
  return { signal: new AbortController().signal }
}

function objectOf(id: string, text: string = `text of ${id}`, children: readonly string[] = []): ObjectRecord {
  return {
    id,
    json: Buffer.from(JSON.stringify({ id, text, children: children.map((child) => ({ referencedId: child })) })),
    references: children,
    claims: [],
  }
}

async function* inBatches(objects: readonly ObjectRecord[]): AsyncGenerator<readonly ObjectRecord[]> {
  for (let from = 0; from < objects.length; from += 100) yield objects.slice(from, from + 100)
}

function textOf({ json }: ObjectRecord): string {
  return Buffer.from(json).toString()
}

const RULES: readonly Rule<ObjectContext>[] = [
  {
    name: 'put: returns objects byte for byte, and inserted counts the new ones',
    check: async (context) => {
      const objects = Array.from({ length: 250 }, (_, at) => objectOf(`id-${at}`))
      same(await context.put(objects), 250, 'inserted for 250 new objects')
      same(await context.put([objects[0], objectOf('new')]), 1, 'inserted for one stored and one new object')
      const texts = await context.texts(objects.map(({ id }) => id))
      for (const object of objects) same(texts[object.id], textOf(object), `the text of ${object.id}`)
    },
  },
  {
    name: 'put: keeps the first text of an id',
    check: async (context) => {
      await context.put([objectOf('a', 'first')])
      same(await context.put([objectOf('a', 'second')]), 0, 'inserted for a stored object')
      same((await context.texts(['a'])).a, textOf(objectOf('a', 'first')), 'the stored text')
    },
  },
  {
    name: 'put: rethrows an error of the batches and stores nothing',
    check: async (context) => {
      const failure = new Error('the producer failed')
      const failing = async function* (): AsyncGenerator<readonly ObjectRecord[]> {
        yield [objectOf('a')]
        throw failure
      }
      await assert.rejects(context.store.put(context.project, failing(), live()), (error) => error === failure)
      same(await context.store.has(context.project, ['a']), [false], 'has after a failed upload')
    },
  },
  {
    name: 'put: keeps projects apart',
    check: async (context) => {
      await context.put([objectOf('a', 'here')])
      const other = `${context.project}-other`
      same(await context.store.has(other, ['a']), [false], 'has in another project')
      same(await context.put([objectOf('a', 'there')], other), 1, 'inserted in another project')
      same((await context.texts(['a'])).a, textOf(objectOf('a', 'here')), 'the text of the first project')
    },
  },
  {
    name: 'has: answers in the order of the ids, a thousand in one call, and repeats duplicates',
    check: async (context) => {
      const objects = Array.from({ length: IDS_PER_CALL }, (_, at) => objectOf(`id-${at}`)).filter(
        (_, at) => at % 2 === 0,
      )
      await context.put(objects)
      const ids = Array.from({ length: IDS_PER_CALL }, (_, at) => `id-${(at * 7) % IDS_PER_CALL}`)
      const expected = ids.map((id) => Number(id.slice(3)) % 2 === 0)
      same(await context.store.has(context.project, ids), expected, 'the answers')
      same(await context.store.has(context.project, ['id-0', 'missing', 'id-0']), [true, false, true], 'the answers')
      same(await context.store.has(context.project, []), [], 'the answers for no ids')
    },
  },
  {
    name: 'get: returns each of a thousand ids once and leaves out missing ones',
    check: async (context) => {
      const objects = Array.from({ length: IDS_PER_CALL - 1 }, (_, at) => objectOf(`id-${at}`))
      await context.put(objects)
      const texts = await context.texts([...objects.map(({ id }) => id), 'missing'])
      same(Object.keys(texts).length, objects.length, 'the number of objects')
      same(await context.texts([]), {}, 'the objects for no ids')
    },
  },
  {
    name: 'get: accepts ids of any text, and an early return',
    check: async (context) => {
      const ids = ['é', 'e\u0301', '..', 'a/b', '__proto__x', "it's", '%2e', 'A', 'a']
      await context.put(ids.map((id) => objectOf(id)))
      const texts = await context.texts(ids)
      for (const id of ids) same(texts[id], textOf(objectOf(id)), `the text of ${JSON.stringify(id)}`)
      for await (const batch of context.store.get(context.project, ids, live())) if (batch.length > 0) break
      same(Object.keys(await context.texts(ids)).length, ids.length, 'the number of objects')
    },
  },
  {
    name: 'descendants: returns each id below the root once, whether stored or not',
    check: async (context) => {
      if (!context.store.descendants) return
      await context.put([objectOf('root', 'r', ['a', 'b']), objectOf('a', 'a', ['b', 'absent']), objectOf('b')])
      const ids = await batchesOf(context.store.descendants(context.project, 'root', live()))
      same(ids.filter((id) => id !== 'root').toSorted(), ['a', 'absent', 'b'], 'the descendants')
    },
  },
]

/**
 * The contract of `ObjectStore` as cases for any test runner, one after the other. `open` gives the store under test; each case opens it, uses projects
 * of its own, which it leaves behind, and closes it where it can be closed.
 *
 *     for (const { name, run } of objectStoreConformance(() => myStore(url))) test(name, run)
 */
export function objectStoreConformance(
  open: Opener<ObjectStore>,
  options?: Pick<ConformanceOptions, 'timeoutMs'>,
): readonly ConformanceCase[] {
  const openClosable = async (): Promise<ClosableStore> => {
    const store = await open()
    await store.ready?.()
    const descendants = store.descendants?.bind(store)
    return {
      put: (...call) => store.put(...call),
      has: (...call) => store.has(...call),
      get: (...call) => store.get(...call),
      ...(descendants ? { descendants } : {}),
      close: async () => store.close?.(),
    }
  }
  return casesOf(RULES, openClosable, (session) => new ObjectContext(session), options)
}
