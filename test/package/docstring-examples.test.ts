import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY } from '../../bench/repository.ts'
import { type DocstringExample, examplesOf, exportedNames } from './docstring-examples.ts'

/* The examples of docstrings are found; `.ci/consumer` compiles and runs them. */

/** The examples of the sources. */
function allExamples(): DocstringExample[] {
  const sources = ['src', 'adapters'].flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(REPOSITORY, folder, name)),
  )
  return sources.flatMap((path) => examplesOf(readFileSync(path, 'utf8')))
}

test('examples are found in docstrings of exports and members, with and without fences', () => {
  const source = [
    '/** No example. */',
    'export interface First {',
    '  /**',
    '   * A member.',
    '   *',
    '   * @example',
    '   * first()',
    '   *',
    '   * second()',
    '   */',
    '  readonly member: string',
    '}',
    '/**',
    ' * A function.',
    ' * @param name it',
    ' * @example with a title',
    ' * ```ts',
    " * third('a')",
    ' * ```',
    ' * @returns it',
    ' */',
    'export declare function second(name: string): string',
  ].join('\n')
  assert.deepEqual(examplesOf(source), [
    { exportName: 'First', text: 'first()\n\nsecond()\n' },
    { exportName: 'second', text: "third('a')\n" },
  ])
})

test('the names of an entry point equal those of its report', () => {
  const names = exportedNames(readFileSync(join(REPOSITORY, 'docs/api/stowage-express.api.md'), 'utf8'))
  assert.ok(names.has('expressMount'), [...names].join(' '))
})

test('each example imports its names from an entry point of the package', () => {
  const manifest = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, unknown>>
  }
  const entries = new Set(Object.keys(manifest.exports).map((path) => `stowage${path.slice(1)}`))
  const examples = allExamples()
  assert.ok(examples.length > 0)
  for (const { exportName, text } of examples) {
    const imported = [...text.matchAll(/ from '(stowage[^']*)'/g)].map(([, name]) => name)
    assert.ok(imported.length > 0, `the example of ${exportName} imports nothing from the package`)
    for (const name of imported) assert.ok(entries.has(name), `the example of ${exportName} imports ${name}`)
  }
})

test('each entry point has an example about itself or about one of its exports', () => {
  const { exports } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>
  }
  const named = new Set(allExamples().map(({ exportName }) => exportName))
  const without = Object.entries(exports).filter(([path, target]) => {
    if (typeof target === 'string') return false
    const source = target.types.replace('./dist/', '').replace(/\.d\.ts$/, '.ts')
    if (examplesOf(readFileSync(join(REPOSITORY, source), 'utf8')).length > 0) return false
    const report = `docs/api/stowage${path.slice(1).replaceAll('/', '-')}.api.md`
    return ![...exportedNames(readFileSync(join(REPOSITORY, report), 'utf8'))].some((name) => named.has(name))
  })
  assert.deepEqual(
    without.map(([path]) => path),
    [],
  )
})
