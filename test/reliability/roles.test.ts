import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createObjectService, type ObjectService, type AccessRight } from '../../src/index.ts'
import {
  accessOf,
  authorization,
  contractList,
  onEverySide,
  store,
  tokenFor,
  type Who,
  withHeaders,
} from '../contract/sides.ts'
import { errorOf, idList, jsonUpload } from '../http/served.ts'

const SECRET = randomBytes(32)

/** Every role, with what its token grants; `undefined` is a request without one. */
const ROLES: readonly (readonly [string, Readonly<Record<string, AccessRight>> | undefined])[] = [
  ['nobody', undefined],
  ['no project', {}],
  ['reads a', { a: 'read' }],
  ['writes a', { a: 'write' }],
  ['reads b', { b: 'read' }],
  ['writes b', { b: 'write' }],
  ['reads a, writes b', { a: 'read', b: 'write' }],
  ['reads all', { '*': 'read' }],
  ['writes all', { '*': 'write' }],
  ['reads all, writes a', { '*': 'read', a: 'write' }],
  ['writes a project of a similar name', { A: 'write', 'a ': 'write', 'a/': 'write', aa: 'write' }],
]

interface Endpoint {
  readonly right: AccessRight
  readonly path: (project: string, id: string) => string
  readonly init: (id: string) => RequestInit
  /** What it answers for an id that is not held. */
  readonly absentStatus: 200 | 404
}

const get = (): RequestInit => ({})
const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  diff: {
    right: 'write',
    path: (project) => `/api/diff/${project}`,
    init: (id) => contractList([id]),
    absentStatus: 200,
  },
  upload: {
    right: 'write',
    path: (project) => `/objects/${project}`,
    init: (id) => jsonUpload([{ id }]),
    absentStatus: 200,
  },
  single: { right: 'read', path: (project, id) => `/objects/${project}/${id}/single`, init: get, absentStatus: 404 },
  'HEAD single': {
    right: 'read',
    path: (project, id) => `/objects/${project}/${id}/single`,
    init: () => ({ method: 'HEAD' }),
    absentStatus: 404,
  },
  list: {
    right: 'read',
    path: (project) => `/api/getobjects/${project}`,
    init: (id) => contractList([id]),
    absentStatus: 200,
  },
  stream: {
    right: 'read',
    path: (project) => `/api/v2/projects/${project}/object-stream`,
    init: (id) => idList([id], 'objectIds'),
    absentStatus: 200,
  },
  graph: { right: 'read', path: (project, id) => `/objects/${project}/${id}`, init: get, absentStatus: 404 },
  'HEAD graph': {
    right: 'read',
    path: (project, id) => `/objects/${project}/${id}`,
    init: () => ({ method: 'HEAD' }),
    absentStatus: 404,
  },
  archive: {
    right: 'read',
    path: (project, id) => `/objects/${project}/${id}?archive=gzip&strict&have=${id}`,
    init: get,
    absentStatus: 404,
  },
}
/** a and b hold something, "missing" does not exist. */
const PROJECTS = ['a', 'b', 'missing'] as const

async function filledService(): Promise<ObjectService> {
  const service = createObjectService({ backend: memoryBackend(), access: accessOf(SECRET) })
  const token = await tokenFor(SECRET, { '*': 'write' })
  for (const project of ['a', 'b']) {
    const objects = [{ id: `root-${project}`, to: { referencedId: 'child' } }, { id: 'child' }]
    const answer = await service.fetch(
      new Request(`http://x/objects/${project}`, withHeaders(jsonUpload(objects), authorization(token))),
    )
    assert.equal(answer.status, 200)
  }
  return service
}

function expected(
  granted: Readonly<Record<string, AccessRight>> | undefined,
  project: string,
  right: AccessRight,
): 'yes' | 401 | 403 {
  if (granted === undefined) return 401
  const rights = new Set<AccessRight | undefined>([granted[project], granted['*']])
  return rights.has('write') || (right === 'read' && rights.has('read')) ? 'yes' : 403
}

test('case 18: each role gets exactly 200, 401, 403 or 404 at each endpoint of each project', async (t) => {
  const service = await filledService()
  t.after(() => service.close({ graceMs: 0 }))
  for (const [role, granted] of ROLES) {
    const headers = authorization(granted === undefined ? undefined : await tokenFor(SECRET, granted))
    for (const [name, { right, path, init, absentStatus }] of Object.entries(ENDPOINTS)) {
      for (const project of PROJECTS) {
        for (const id of project === 'missing' || name === 'upload' ? ['child'] : ['child', 'absent']) {
          if (name === 'upload' && project === 'missing') continue
          const answer = await service.fetch(
            new Request(`http://x${path(project, id)}`, withHeaders(init(id), headers)),
          )
          await answer.arrayBuffer()
          const allowed = expected(granted, project, right)
          const status = allowed !== 'yes' ? allowed : project === 'missing' || id === 'absent' ? absentStatus : 200
          assert.equal(answer.status, status, `${role}: ${name} of ${id} in ${project}`)
        }
      }
    }
  }
})

/** Everything that an answer tells, but for the id of the request. */
async function told(service: ObjectService, path: string, init: RequestInit): Promise<unknown> {
  const answer = await service.fetch(new Request(`http://x${path}`, init))
  return [answer.status, [...answer.headers].filter(([name]) => name !== 'x-request-id'), await answer.text()]
}

test('case 18: a caller without access gets the same answer, whether the project and the object exist or not', async (t) => {
  const service = await filledService()
  t.after(() => service.close({ graceMs: 0 }))
  const conditions: readonly Record<string, string>[] = [
    {},
    { 'If-None-Match': '*' },
    { 'If-Match': '"x"' },
    { Range: 'bytes=99999-' },
    { Accept: 'image/png' },
    { 'Accept-Encoding': 'identity;q=0' },
    { Origin: 'https://viewer.example' },
  ]
  for (const granted of [undefined, {}, { other: 'write' }] as readonly (
    | Readonly<Record<string, AccessRight>>
    | undefined
  )[]) {
    const headers = authorization(granted === undefined ? undefined : await tokenFor(SECRET, granted))
    for (const [name, { path, init }] of Object.entries(ENDPOINTS)) {
      for (const condition of conditions) {
        const answers = await Promise.all(
          [
            ['a', 'child'],
            ['a', 'absent'],
            ['b', 'root-b'],
            ['missing', 'child'],
          ].map(async ([project, id]) =>
            told(service, path(project, id), withHeaders(init(id), { ...headers, ...condition })),
          ),
        )
        for (const answer of answers) assert.deepEqual(answer, answers[0], `${name} with ${JSON.stringify(condition)}`)
      }
    }
  }
  const reader = authorization(await tokenFor(SECRET, { a: 'read', b: 'read', missing: 'read' }))
  const diffs = await Promise.all(
    PROJECTS.map(async (project) => told(service, `/api/diff/${project}`, contractList(['child'], reader))),
  )
  assert.deepEqual([diffs[1], diffs[2]], [diffs[0], diffs[0]], 'diff tells nothing to who may only read')
})

test('case 18: ids of other projects are absent in diff, lists, graphs, have and uploads', async (t) => {
  const service = await filledService()
  t.after(() => service.close({ graceMs: 0 }))
  const headers = authorization(await tokenFor(SECRET, { a: 'write', own: 'write' }))
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    service.fetch(new Request(`http://x${path}`, withHeaders(init, headers)))
  const json = async (path: string, init?: RequestInit): Promise<unknown> => (await ask(path, init)).json()
  assert.deepEqual(await json('/api/diff/a', contractList(['root-a', 'root-b', 'child'])), {
    'root-a': true,
    'root-b': false,
    child: true,
  })
  assert.deepEqual(await json('/api/getobjects/a', contractList(['root-b'])), [])
  assert.equal((await errorOf(await ask('/objects/a/root-b'))).status, 404)
  assert.deepEqual(
    await json(
      '/objects/own',
      jsonUpload([{ id: 'root-b', to: [{ referencedId: 'child' }, { referencedId: 'root-a' }] }]),
    ),
    { objects: 1, created: 1, differing: 0, rewritten: 0, assigned: [], assignedCount: 0 },
  )
  const graph = await ask('/objects/own/root-b?have=root-a')
  assert.equal(graph.headers.get('stowage-missing-objects'), '2')
  assert.match(graph.headers.get('stowage-have') ?? '', /^root-a;unknown$/)
  assert.deepEqual(await graph.json(), [{ id: 'root-b', to: [{ referencedId: 'child' }, { referencedId: 'root-a' }] }])
  const own = (await json('/objects/own/root-b?strict')) as { ids: string[] }
  assert.deepEqual(own.ids.toSorted(), ['child', 'root-a'])
})

const everySide = onEverySide()

everySide('case 18: what may not be written is not written, what may not be read is not sent', async (side) => {
  await store(side, [{ id: 'held', secret: 'of the project' }])
  for (const who of ['nobody', 'stranger', 'reader'] as Who[]) {
    assert.ok(
      (await errorOf(await side.ask(`/objects/${side.project}`, jsonUpload([{ id: `by-${who}` }]), who))).status >= 401,
    )
  }
  for (const who of ['nobody', 'stranger'] as Who[]) {
    for (const path of ['held', 'held/single', 'held?archive=gzip'])
      assert.ok(
        !(await (await side.ask(`/objects/${side.project}/${path}`, {}, who)).text()).includes('of the project'),
      )
  }
  const ids = ['by-nobody', 'by-stranger', 'by-reader']
  assert.deepEqual(
    await (await side.ask(`/api/diff/${side.project}`, contractList(ids))).json(),
    Object.fromEntries(ids.map((id) => [id, false])),
  )
})
