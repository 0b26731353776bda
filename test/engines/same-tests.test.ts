import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runOnSharedEngines } from './same-tests.ts'

/** All of them take many minutes. `STOWAGE_SAME_TESTS` names others, or `all`, each in a run of its own. */
const ALL: readonly string[] = ['contract/', 'automation-server/', 'clients/']
const SOME: readonly string[] = [
  'contract/contract',
  'contract/rules',
  'contract/real-clients',
  'automation-server/http',
  'automation-server/run-backends',
  'clients/python',
  'clients/equal',
]
/** Few objects where only some of the tests run: enough for requests to every server. */
const SOME_ELEMENTS = '100'

const chosen = process.env.STOWAGE_SAME_TESTS
const runs: readonly (readonly string[])[] =
  chosen === undefined ? [SOME] : (chosen === 'all' ? ALL : chosen.split(',')).map((name) => [name])

for (const names of runs)
  test(`the tests of ${names.join(', ')} pass on three servers over PostgreSQL and S3, each call on the next`, async (t) => {
    const elements = names === SOME ? { STOWAGE_CLIENT_ELEMENTS: SOME_ELEMENTS } : {}
    const { passed, use } = await runOnSharedEngines(t, names, elements)
    t.diagnostic(`${passed} tests passed; ${use.storages} storages, calls ${use.calls.join(' ')}`)
    for (const name of use.alone) t.diagnostic(`alone: ${name}`)
    assert.ok(use.storages > 0)
    for (const count of use.calls) assert.ok(count > 0)
  })
