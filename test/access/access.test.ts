import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimAuthorize, type Principal, type AccessRight } from '../../src/access/access.ts'
import { projectsOfClaim } from '../../src/access/claim.ts'
import { openAccess } from '../../src/access/open.ts'

type Expected = 'nothing' | 'read' | 'write'

function rightsOf(principal: Principal, projectId: string): Expected {
  const [read, write] = (['read', 'write'] satisfies AccessRight[]).map((right) =>
    claimAuthorize(principal, projectId, right),
  )
  assert.ok(read || !write, 'write without read')
  if (write) return 'write'
  return read ? 'read' : 'nothing'
}

const roles: readonly (readonly [string, Principal['projects'], Readonly<Record<string, Expected>>])[] = [
  ['reader', { a: 'read' }, { a: 'read', b: 'nothing' }],
  ['writer', { a: 'write' }, { a: 'write', b: 'nothing', A: 'nothing' }],
  ['reader of all', { '*': 'read' }, { a: 'read', b: 'read', '*': 'read' }],
  [
    'writer of one, reader of all',
    new Map([
      ['*', 'read'],
      ['a', 'write'],
    ]),
    { a: 'write', b: 'read' },
  ],
  [
    'reader of one, writer of all',
    new Map([
      ['*', 'write'],
      ['a', 'read'],
    ]),
    { a: 'write', b: 'write' },
  ],
  ['nobody', undefined, { a: 'nothing', '*': 'nothing' }],
  ['empty', {}, { a: 'nothing', '': 'nothing' }],
]

for (const [name, projects, expected] of roles) {
  test(`the rights of a ${name} may be a map or an object`, () => {
    for (const [projectId, right] of Object.entries(expected)) {
      assert.equal(rightsOf({ subject: 's', projects }, projectId), right, projectId)
      if (projects instanceof Map)
        assert.equal(rightsOf({ subject: 's', projects: Object.fromEntries(projects) }, projectId), right, projectId)
    }
  })
}

test('names of inherited members are ordinary project ids', () => {
  for (const projectId of ['__proto__', 'constructor', 'hasOwnProperty', 'toString', 'get']) {
    for (const projects of [{}, new Map(), JSON.parse('{"x":"write"}') as Record<string, AccessRight>]) {
      assert.equal(rightsOf({ subject: 's', projects }, projectId), 'nothing', projectId)
    }
    const granted = JSON.parse(`{"${projectId}":"write"}`) as Record<string, AccessRight>
    assert.equal(rightsOf({ subject: 's', projects: granted }, projectId), 'write', projectId)
    assert.equal(rightsOf({ subject: 's', projects: granted }, 'a'), 'nothing', projectId)
  }
})

test('a claim named __proto__ grants that project and nothing else', () => {
  const projects = projectsOfClaim(JSON.parse('{"projects":{"__proto__":"write","a":"read"}}'))
  assert.deepEqual(
    [...projects],
    [
      ['__proto__', 'write'],
      ['a', 'read'],
    ],
  )
})

test('the malformed parts of a claim grant nothing', () => {
  const cases = [
    'null',
    '1',
    '"write"',
    '[]',
    '{}',
    '{"projects":null}',
    '{"projects":["a"]}',
    '{"projects":"write"}',
    '{"projects":{"a":"WRITE"}}',
    '{"projects":{"a":true}}',
    '{"projects":{"a":["write"]}}',
    '{"projects":{"a":{"read":"write"}}}',
    '{"Projects":{"a":"write"}}',
  ]
  for (const text of cases) assert.deepEqual([...projectsOfClaim(JSON.parse(text))], [], text)
  assert.deepEqual([...projectsOfClaim(undefined)], [])
  assert.deepEqual([...projectsOfClaim({ projects: { a: 'admin', b: 'read' } })], [['b', 'read']])
})

test('open access allows every request', async () => {
  const access = openAccess()
  const principal = await access.authenticate({ headers: new Headers(), method: 'GET', path: '/', host: undefined })
  assert.ok(principal)
  assert.equal(await access.authorize(principal, 'any', 'write'), true)
  assert.equal(rightsOf(principal, 'any'), 'write')
})
