import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { REPOSITORY } from '../../bench/repository.ts'
import type { ObjectService } from '../../src/index.ts'
import { createClient, type ClientOptions } from '../../src/client/index.ts'
import * as streams from '../../src/streams/index.ts'
import { openService } from '../http/served.ts'
import { buildModel } from '../support/model.ts'
import { temporaryFolder } from '../support/folder.ts'

const PAGE = readFileSync(join(REPOSITORY, 'docs/streams.md'), 'utf8')
const MODEL = buildModel({ objects: 300 })
const OBJECTS = MODEL.objects.map(({ json }) => json)
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as new (
  ...parameters: string[]
) => (...values: unknown[]) => Promise<unknown>

/** The recipes of the page by their names, as they are pasted. */
const RECIPES: ReadonlyMap<string, string> = new Map(
  [...PAGE.matchAll(/```js\n\/\/ recipe: (.*)\n([^]*?)```/g)].map(([, name, code]) => [name, code]),
)
const done = new Set<string>()

/** Runs a recipe, with what the page takes for given. Resolves with the value of `result`. */
async function cook(
  name: string,
  given: Readonly<Record<string, unknown>>,
  result: string = 'undefined',
): Promise<unknown> {
  const code = RECIPES.get(name)
  assert.ok(code !== undefined, `the page has a recipe for ${name}`)
  done.add(name)
  const inFolder = code.replaceAll(/'([\w.]+\.(?:ndjson|gz))'/g, (_, file: string) =>
    JSON.stringify(join(String(given.folder), file)),
  )
  // A function has no import statements.
  const imported = inFolder.replaceAll(/^import (\{.*\}) from '(.*)'$/gm, "const $1 = await load('$2')")
  const all = { console: { log: () => undefined }, load, ...given }
  return new AsyncFunction(...Object.keys(all), `${imported}\nreturn ${result}`)(...Object.values(all))

  function load(specifier: string): Promise<unknown> {
    if (specifier === 'stowage/streams') return Promise.resolve(streams)
    return specifier === 'stowage/client' ? Promise.resolve(given.client) : import(specifier)
  }
}

function kitchen(t: TestContext): { readonly folder: string; readonly service: ObjectService } {
  const folder = temporaryFolder(t)
  const service = openService()
  t.after(() => service.close({ graceMs: 0 }))
  return { folder, service }
}

async function held(service: ObjectService, projectId: string = 'demo'): Promise<number> {
  return (await service.project(projectId).has([...MODEL.byId.keys()])).size
}

test('files go into a store', async (t) => {
  for (const [name, file, content] of [
    ['a file into a store', 'model.json.gz', gzipSync(`[${OBJECTS.join(',')}]`)],
    ['a long file into a store', 'model.ndjson', OBJECTS.join('\n')],
  ] as const) {
    const { folder, service } = kitchen(t)
    writeFileSync(join(folder, file), content)
    await cook(name, { folder, project: service.project('demo') })
    assert.equal(await held(service), 300, name)
  }
})

test('a store goes into files, a service and a response', async (t) => {
  const { folder, service } = kitchen(t)
  const project = service.project('demo')
  await project.upload(Readable.from([Buffer.from(`[${OBJECTS.join(',')}]`)]), 'application/json')
  const given = { folder, service, project, root: MODEL.rootId }
  await cook('a store into a file', given)
  const array = JSON.parse(gunzipSync(readFileSync(join(folder, 'graph.json.gz'))).toString()) as unknown[]
  assert.equal(array.length, 300)
  await cook('a filter between', given)
  assert.equal(readFileSync(join(folder, 'public.ndjson'), 'utf8').trim().split('\n').length, 300)
  const other = openService()
  t.after(() => other.close({ graceMs: 0 }))
  await cook('one service into another', { ...given, other })
  assert.equal(await held(other, 'copy'), 300)
  const request = new Request('http://in.process')
  const answer = (await cook('an answer of a fetch host', { ...given, request }, 'answer')) as Response
  assert.equal((JSON.parse(gunzipSync(await answer.arrayBuffer()).toString()) as unknown[]).length, 300)
})

test('one server goes into another', async (t) => {
  const { folder, service } = kitchen(t)
  const other = openService()
  t.after(() => other.close({ graceMs: 0 }))
  const body = `[${OBJECTS.join(',')}]`
  await service.project('demo').upload(Readable.from([Buffer.from(body)]), 'application/json')
  const hosts = new Map([
    ['https://one.example', service],
    ['https://other.example', other],
  ])
  const client = {
    createClient: (options: ClientOptions) =>
      createClient({
        ...options,
        token: undefined,
        fetch: (url, init) => (hosts.get(new URL(url).origin) as ObjectService).fetch(new Request(url, init)),
      }),
  }
  await cook('one server into another', { folder, client, root: MODEL.rootId })
  assert.equal(await held(other), 300)
})

test('a host reads the objects of a request itself', async (t) => {
  const { folder } = kitchen(t)
  const request = Readable.from([gzipSync(`[${OBJECTS.join(',')}]`)])
  const ids = (await cook('objects of a request', { folder, request }, 'ids')) as string[]
  assert.deepEqual(new Set(ids), new Set(MODEL.byId.keys()))
})

test('every recipe was tested', () => {
  assert.deepEqual(
    [...RECIPES.keys()].filter((name) => !done.has(name)),
    [],
  )
  assert.ok(RECIPES.size >= 7)
})
