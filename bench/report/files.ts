import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Results } from '../macro/results.ts'
import { REPOSITORY } from '../repository.ts'
import { comparisonPage, reportPage } from './page.ts'
import { readmeBlock, replaceBlock } from './readme.ts'

/** The results that the table of the README comes from. */
export const PUBLISHED: string = join(REPOSITORY, 'docs', 'benchmark', 'results')
const SCHEMA = join(REPOSITORY, 'docs', 'benchmark', 'results.schema.json')
const README = join(REPOSITORY, 'README.md')

/** Writes `<path>.json` and `<path>.html`. */
export async function writeResults(path: string, results: Results): Promise<void> {
  checkResults(results, path)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.json`, `${JSON.stringify(results, undefined, 2)}\n`)
  await writeFile(`${path}.html`, reportPage(results))
}

/** Writes the results to the documentation, and their table to the README. */
export async function publish(results: Results): Promise<void> {
  await writeResults(PUBLISHED, results)
  await writeFile(README, replaceBlock(readFileSync(README, 'utf8'), readmeBlock(results)))
  await promisify(execFile)(join(REPOSITORY, 'node_modules/.bin/oxfmt'), [README])
}

/** Writes a page that compares two results. */
export async function writeComparison(path: string, before: string, after: string): Promise<void> {
  const page = comparisonPage(readResults(before), readResults(after))
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.html`, page)
}

/** Throws if the file is not a result file of this version. */
export function readResults(path: string): Results {
  return checkResults(JSON.parse(readFileSync(path, 'utf8')), path)
}

/** Throws, naming the place, if the value does not match the schema. */
export function checkResults(value: unknown, name: string): Results {
  const ajv = new Ajv2020({ allErrors: true })
  const validate = ajv.compile<Results>(JSON.parse(readFileSync(SCHEMA, 'utf8')) as object)
  if (!validate(value)) throw new Error(`${name} has no results of this version: ${ajv.errorsText(validate.errors)}`)
  return value
}
