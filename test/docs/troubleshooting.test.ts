import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY } from '../../bench/repository.ts'
import { ERROR_STATUS } from '../../src/errors.ts'

/** A row of one of the tables of codes: the code, its meaning, and what to do about it. */
const ROW = /^\| `([a-z_0-9]+)`\s*\| ([^|]+)\| ([^|]+)\|$/gm

void test('the troubleshooting page has each error code once, under its status, with a meaning and a remedy', async () => {
  const page = await readFile(join(REPOSITORY, 'docs/troubleshooting.md'), 'utf8')
  const sections = page.split(/^## /m).slice(1)
  const documented = sections.flatMap((section) => {
    const [heading] = section.split('\n', 1)
    return [...section.matchAll(ROW)].map(([, code, meaning, remedy]) => ({ code, meaning, remedy, heading }))
  })
  assert.deepEqual(documented.map(({ code }) => code).sort(), Object.keys(ERROR_STATUS).sort())
  for (const { code, meaning, remedy, heading } of documented) {
    assert.ok(meaning.trim().length > 15 && remedy.trim().length > 15, code)
    const statuses = heading.match(/\d{3}/g)?.map(Number) ?? []
    const [first, last = first] = statuses
    const status = ERROR_STATUS[code as keyof typeof ERROR_STATUS]
    const isUnder = heading.includes(' to ') ? status >= first && status <= last : statuses.includes(status)
    assert.ok(isUnder, `${code} has the status ${status} and stands under "${heading}"`)
  }
})
