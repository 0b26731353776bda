import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { automation, DEFAULT_AUTOMATION_LIMITS, DEFAULT_RUN_TIMES } from '../../src/automation-server/index.ts'
import { describeFailure } from '../../src/cli/exit.ts'
import { registerFiles } from '../../src/cli/serve-functions.ts'

const RULE_CHECKER = fileURLToPath(new URL('../../bench/functions/rule-checker.ts', import.meta.url))

const SERVER_URL = 'http://127.0.0.1:8642'
/* Later nodes run it, and say that it is no function. */
const KNOWS_TYPESCRIPT = Boolean((process.features as { readonly typescript?: unknown }).typescript)

function written(t: TestContext, name: string, code: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'stowage-function-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, name), code)
  return join(folder, name)
}

/** A command in its shortest form: it writes this schema. */
function writing(schema: object): string {
  return `require('node:fs').writeFileSync(process.argv[3], ${JSON.stringify(JSON.stringify(schema))})`
}

test('a file of a function is registered under its own name, with what its code says of it', async (t) => {
  const extension = automation({ serverUrl: SERVER_URL })
  const schema = { type: 'object', properties: { tolerance: { type: 'number' } } }
  await registerFiles(extension, [RULE_CHECKER, written(t, 'plain.cjs', writing(schema))])
  const [plain, checker] = extension.functions()
  assert.deepEqual([plain.id, plain.name, plain.description, Object.keys(plain.inputs.properties)], ['plain', 'plain', '', ['tolerance']])
  assert.deepEqual([checker.id, checker.name, checker.inputs.properties.minimumMinutes.maximum], ['rule-checker', 'Rule checker', 360])
  assert.match(checker.description, /^Marks walls/)
  assert.match(checker.release, /^[0-9a-f]{12}$/)
})

test('a file that is no function is refused with its name and what is wrong', async (t) => {
  const good = written(t, 'same.cjs', writing({ type: 'object', properties: {} }))
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[join(tmpdir(), 'no-such-function.js')], /^--function \S+no-such-function\.js: ENOENT: no such file or directory/],
    [[tmpdir()], /: EISDIR: illegal operation on a directory/],
    [[written(t, 'empty.cjs', '')], /empty\.cjs: .* it wrote no file; the file of a function ends with a call of executeFunction$/],
    [[written(t, 'broken.cjs', "throw new Error('a library is missing')")], /broken\.cjs: .* exit code 1; the end of its output:.*a library is missing/],
    [[written(t, 'list.cjs', writing({ type: 'object', properties: { list: { type: 'array' } } }))], /list\.cjs: .*"\/properties\/list\/type"/],
    [[written(t, 'no id.cjs', writing({ type: 'object', properties: {} }))], /no id\.cjs: a function's id is "no id"; it must be/],
    ...(KNOWS_TYPESCRIPT ? [] : [[[written(t, 'typed.ts', 'export {}')], /typed\.ts: node v.* does not run TypeScript; compile the file, install tsx beside it/] as const]),
    [[good, good], /same\.cjs: there is a function "same" already/],
  ]
  await Promise.all(cases.map(async ([files, words]) => assert.rejects(registerFiles(automation({ serverUrl: SERVER_URL }), files), (error) => words.test(describeFailure(error)) || assert.fail(describeFailure(error)))))
})

test('the page for operators has every limit, time and option', async () => {
  const page = await readFile(new URL('../../docs/automation-server.md', import.meta.url), 'utf8')
  for (const name of [...Object.keys(DEFAULT_AUTOMATION_LIMITS), ...Object.keys(DEFAULT_RUN_TIMES)]) assert.ok(page.includes(`\`${name}\``), name)
  for (const name of ['resultObjectsMax', 'bodyBytesMax', 'chainMax'] as const) assert.match(page, new RegExp(`\\| .*\`${name}\`.*\\| ${DEFAULT_AUTOMATION_LIMITS[name].toLocaleString('en')}`))
})
