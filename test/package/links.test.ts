import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { REPOSITORY } from '../../bench/repository.ts'

/* The pages are in the package, and what they link to is there too: they can be read without a network. */

const run = promisify(execFile)
const LINK = /\]\(([^)\s]+)\)/g
const EXAMPLES = /`((?:bench|test\/mounts)\/[\w/.-]+\/[\w.-]*)`/g

async function packedFiles(): Promise<readonly string[]> {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--silent'], {
    cwd: REPOSITORY,
  })
  const [{ files }] = JSON.parse(stdout) as [{ readonly files: readonly { readonly path: string }[] }]
  return files.map(({ path }) => path)
}

/** The anchors that headings make, as GitHub does. */
function anchorsOf(page: string): Set<string> {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading.toLowerCase())
  return new Set(headings.map((heading) => heading.replaceAll(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')))
}

const files = await packedFiles()
const pages = files.filter((path) => path.endsWith('.md') && !path.startsWith('docs/api/'))
const textOf = (page: string): string => readFileSync(join(REPOSITORY, page), 'utf8')

test('every relative link of a page leads to a file of the package and to one of its headings', () => {
  assert.ok(pages.length > 10, pages.join(' '))
  let links = 0
  for (const page of pages) {
    for (const [, target] of textOf(page).matchAll(LINK)) {
      if (/^[a-z]+:/.test(target)) continue
      links++
      const [path, anchor] = target.split('#', 2)
      const file = path === '' ? page : posix.normalize(posix.join(dirname(page), path))
      const isThere = file.endsWith('/') ? files.some((name) => name.startsWith(file)) : files.includes(file)
      assert.ok(isThere, `${page} links to ${target}, which is not in the package`)
      if (anchor !== undefined)
        assert.ok(anchorsOf(textOf(file)).has(anchor), `${page}: ${file} has no heading #${anchor}`)
    }
  }
  assert.ok(links > 40, `${links} links`)
})

test('the package contains the examples that pages offer for copying', () => {
  const named = pages.flatMap((page) => [...textOf(page).matchAll(EXAMPLES)].map(([, path]) => ({ page, path })))
  assert.ok(named.length > 3)
  for (const { page, path } of named) {
    const isThere = files.some((file) => (path.endsWith('/') ? file.startsWith(path) : file === path))
    assert.ok(isThere, `${page} names ${path}, which is not in the package`)
  }
})
