import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY } from '../../bench/repository.ts'
import { blocksOf, pages } from './blocks.ts'

/*
 * Every block of code of README and docs is run by some test, or the reason why it cannot be run stands here.
 * TypeScript needs no entry: `.ci/consumer` compiles and runs all of it, in a project that has the packed package.
 */

const NEEDS_ROOT =
  'needs root, systemd and a domain; the programs and the files in docs/deploy are tested in test/deploy, and the commands in test/docs/commands.test.ts'
const OUTPUT = 'is output or an address, and no code'

interface Fate {
  /** The test that runs them. */
  readonly by?: string
  /** Why they are not run. */
  readonly because?: string
}

const FATES: Readonly<Record<string, Readonly<Record<string, Fate>>>> = {
  'README.md': {
    js: { by: '.ci/consumer' },
    sh: { by: 'test/processes/readme.test.ts' },
    indented: { by: 'test/processes/readme.test.ts' },
  },
  'docs/archive-format.md': { sh: { by: 'test/processes/archive.test.ts' } },
  'docs/automation-server.md': {
    '': {
      because:
        'a reader puts ids between its lines; test/automation-server/end-to-end.test.ts makes the same requests, and test/docs/commands.test.ts reads the commands',
    },
  },
  'docs/automation.md': { '': { by: 'test/processes/function.test.ts' } },
  'docs/backends.md': { js: { by: '.ci/consumer' } },
  'docs/backup.md': { sh: { because: NEEDS_ROOT } },
  'docs/cluster.md': {
    sh: {
      because:
        'needs several machines; test/engines/cluster.test.ts runs the same commands on three servers of one machine',
    },
  },
  'docs/command-line.md': { '': { by: 'test/processes/transcripts.test.ts' } },
  'docs/compatibility.md': {
    sh: { because: 'takes minutes; the sections engines and clients of the pipeline run the same commands' },
  },
  'docs/deploy.md': { sh: { because: NEEDS_ROOT } },
  'docs/benchmark.md': {
    indented: { because: 'take minutes; test/processes/benchmark.test.ts measures the same rows on a small model' },
  },
  'docs/client.md': { indented: { because: 'is the shape of a delta, with an ellipsis' } },
  'docs/hosts.md': {
    js: { by: 'test/recipes/recipes.test.ts' },
    json: { because: 'is the payload of a token, and no code' },
  },
  'docs/lifecycle.md': { sh: { by: 'test/processes/upkeep-commands.test.ts' } },
  'docs/migrate.md': {
    sh: { because: 'are the addresses of the two servers, and the call of the script that the test runs' },
    bash: { by: 'test/processes/migrate.test.ts' },
  },
  'docs/simulation.md': { text: { because: 'is the command line that a failed run prints' } },
  'docs/streams.md': { js: { by: 'test/streams/recipes.test.ts' } },
  'docs/troubleshooting.md': { json: { because: OUTPUT } },
  'docs/upgrade.md': { sh: { because: NEEDS_ROOT } },
  'docs/viewer.md': {
    sh: { by: 'test/browser/speckle-viewer.test.ts' },
    js: { by: 'test/browser/speckle-viewer.test.ts' },
    html: { by: 'test/browser/speckle-viewer.test.ts' },
    '': { because: OUTPUT },
  },
}

for (const page of pages())
  test(`${page}: a test runs each code block, or the page gives a reason`, () => {
    const languages = new Set(blocksOf(page).map(({ language }) => language))
    languages.delete('ts')
    assert.deepEqual([...languages].sort(), Object.keys(FATES[page] ?? {}).sort(), `the entry of ${page} in FATES`)
  })

test('the tests that run code blocks exist', () => {
  for (const [page, fates] of Object.entries(FATES))
    for (const { by, because } of Object.values(fates)) {
      assert.ok((by === undefined) !== (because === undefined), page)
      if (by !== undefined) assert.ok(existsSync(join(REPOSITORY, by)), by)
    }
})
