import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StowageError } from '../../src/errors.ts'
import { AUTOMATION_API_SHAPES } from '../../src/automation-server/schemas/shapes/index.ts'
import { NEW_AUTOMATION } from '../../src/automation-server/schemas/shapes/automations.ts'
import { RUN_REPORT } from '../../src/automation-server/schemas/shapes/reports.ts'
import { readSource } from '../support/sources.ts'
import { OBJECT_SHAPES } from '../../src/openapi/objects/shapes.ts'
import { typesOf } from '../support/wire-types.ts'

test('the wire types match the schemas', () => {
  for (const [path, text] of Object.entries(typesOf([...OBJECT_SHAPES, ...AUTOMATION_API_SHAPES])))
    assert.equal(words(readSource(path).text), words(text), `npm run schemas writes ${path}`)
})

test('every schema has a unique name', () => {
  const names = AUTOMATION_API_SHAPES.map(({ name }) => name)
  assert.deepEqual(names.length, new Set(names).size)
})

test('a schema error names the wrong member and the right form', () => {
  const automation = { name: 'Walls', functionId: 'f', modelId: '0'.repeat(32), inputs: {}, trigger: 'version' }
  for (const [value, message] of [
    [[], /^the body must be an object; it is a list of 0$/],
    [{ ...automation, trigger: 'never' }, /^trigger must be one of "version", "manual"; it is "never"$/],
    [{ ...automation, enabled: 1 }, /^enabled must be true or false; it is 1$/],
    [{ ...automation, color: 'red' }, /^the body has the unknown member "color"; known members are name, /],
    [{ ...automation, name: 'two\nlines' }, /^name is ".*"; it must be one line of 1 to 200 characters/],
  ] as const)
    assert.throws(
      () => NEW_AUTOMATION.read(value, ''),
      (error: StowageError) => error.code === 'invalid_request' && message.test(error.message),
    )
  assert.throws(
    () =>
      RUN_REPORT.read({ sequence: 1, annotations: [{ category: 'a', level: 'ERROR', objectAppIds: { a: 5 } }] }, ''),
    /^StowageError: annotations\[0\]\.objectAppIds\["a"\] must be a string; it is 5$/,
  )
})

/** Texts are compared as the compiler sees them: a formatter may break lines. */
function words(text: string): string {
  return text.replace(/[\s;,*|()]+/g, '')
}
