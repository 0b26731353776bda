import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonArray } from '../../src/emit/json-array.ts'
import { collected } from './made-selection.ts'

async function* buffersOf(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}

async function arrayOf(first: boolean, ...texts: string[]): Promise<string> {
  return (await collected(jsonArray(buffersOf(...texts), { first }))).toString()
}

test('an array has one separator before each text and a bracket at the end', async () => {
  assert.equal(await arrayOf(true, 'a\t{"x":1}\n'), '[{"x":1}]')
  assert.equal(await arrayOf(true, 'a\t{"x":1}\nbcd\t{}\n', 'é\t{"y":"ü"}\n'), '[{"x":1},{},{"y":"ü"}]')
  assert.equal(await arrayOf(true, '', 'a\t1\n', '', 'b\t2\n'), '[1,2]')
})

test('no lines give an empty array, or the end of a continued one', async () => {
  assert.equal(await arrayOf(true), '[]')
  assert.equal(await arrayOf(true, ''), '[]')
  assert.equal(await arrayOf(false), ']')
})

test('a continued array starts with a comma', async () => {
  assert.equal(await arrayOf(false, 'a\t{"x":1}\nb\t2\n'), ',{"x":1},2]')
})

test('input that is not lines is an error', async () => {
  for (const text of ['a\t{}', 'a {}\n', 'a\n\t{}\n', 'a\t{}\nb', '\n']) {
    await assert.rejects(arrayOf(true, text), { code: 'corrupt_data' }, JSON.stringify(text))
  }
})
