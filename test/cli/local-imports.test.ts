import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { digestWithImports } from '../../src/cli/server/local-imports.ts'
import { temporaryFolder } from '../support/folder.ts'

const FILES: Readonly<Record<string, string>> = {
  'checker.ts': `import { rules } from './lib/rules.js'\nimport 'left-pad'\nconst more = await import("./lib/more.mjs")\nexport { rules, more }`,
  'lib/rules.ts': `import table from '../table.json' with { type: 'json' }\nexport * from './folder'\nexport const rules = table`,
  'lib/more.mjs': `import { createRequire } from 'node:module'\nconst require = createRequire(import.meta.url)\nrequire('./old')\nimport '../checker.ts'`,
  'lib/old.cjs': 'module.exports = 1',
  'lib/folder/index.js': 'export const a = 1',
  'table.json': '{}',
  'unrelated.js': 'export const b = 1',
}

test('the digest of a file changes with each file that it imports by a relative path, and no other', async (t) => {
  const folder = temporaryFolder(t)
  for (const [name, code] of Object.entries(FILES)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), code)
  }
  const digest = async () => (await digestWithImports(join(folder, 'checker.ts'))).digest
  const before = await digest()
  for (const [name, code] of Object.entries(FILES)) {
    await writeFile(join(folder, name), `${code}\n`)
    assert.equal((await digest()) === before, name === 'unrelated.js', name)
    await writeFile(join(folder, name), code)
  }
  assert.equal(await digest(), before)
  assert.deepEqual(
    (await digestWithImports(join(folder, 'checker.ts'))).files.map((file) => relative(folder, file)).sort(),
    Object.keys(FILES)
      .filter((name) => name !== 'unrelated.js')
      .sort(),
  )
  assert.equal(
    (await digestWithImports(join(folder, 'unrelated.js'))).digest,
    createHash('sha256').update(FILES['unrelated.js']).digest('hex'),
  )
})
