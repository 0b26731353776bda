import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Target } from '../../bench/upload.ts'
import { linesById, required, runClient } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

/** The npm loaders of the existing service's viewer, unchanged. Each runs in a process of its own. */
export type Loader = 'objectloader2' | 'objectloader'

export interface Loaded {
  /** The texts as they came over the wire, by id. */
  readonly received: ReadonlyMap<string, string>
  /** The objects that the loader gave out, as `JSON.stringify` has them, by id. */
  readonly given: ReadonlyMap<string, string>
  /**
   * Whether the loader came to its end, the message of what it threw, or that it was still waiting when the time was
   * up.
   */
  readonly end: string
  /** What it told the console as errors. */
  readonly complaints: string
  /** How many objects each answer said to be missing, where it did. */
  readonly missing: readonly string[]
}

const ITERATORS: Readonly<Record<Loader, string>> = {
  objectloader2: `
import { ObjectLoader2Factory } from '@speckle/objectloader2'
const open = () => ObjectLoader2Factory.createFromUrl({ serverUrl, streamId, objectId, token, options: { useCache: false, fetch: noted } })`,
  objectloader: `
import ObjectLoader from '@speckle/objectloader'
const open = () => new ObjectLoader({ serverUrl, streamId, objectId, token, options: { enableCaching: false, fetch: noted, customLogger: () => undefined } })`,
}

/** Its \`fetch\` is the real one and only keeps a copy of what came. */
const LOAD = `
import { writeFileSync } from 'node:fs'
const { SERVER: serverUrl, PROJECT: streamId, ROOT: objectId, TOKEN: token, OUT: out, LIMIT: limit, WATCHED: watched } = process.env
const texts = [], missing = [], given = [], complaints = []
console.error = (...words) => complaints.push(words.join(' '))
async function noted(url, init) {
  const response = await fetch(url, init)
  if (response.headers.has('stowage-missing-objects')) missing.push(response.headers.get('stowage-missing-objects'))
  const copy = response.clone()
  if (copy.ok) texts.push(copy.text().then((text) => (String(url).endsWith('/single') ? objectId + '\\t' + text + '\\n' : text)))
  return response
}
async function load() {
  for await (const object of open().getObjectIterator()) given.push(object.id + '\\t' + JSON.stringify(object))
  return 'done'
}
const late = new Promise((resolve) => {
  const wait = () => resolve('still waiting')
  setTimeout(wait, Number(limit))
  if (watched !== '') console.error = (...words) => setTimeout(wait, Number(watched), complaints.push(words.join(' ')))
})
const end = await Promise.race([load().catch((error) => String(error.message)), late])
writeFileSync(out + '/received', (await Promise.all(texts)).join(''))
writeFileSync(out + '/given', given.join('\\n'))
writeFileSync(out + '/end', JSON.stringify({ end, missing, complaints: complaints.join('\\n') }))
process.exit(0)
`

const LIMIT_MS = 480_000

/**
 * Loads a root with everything below it. The loaders sleep between batches: this is no measure of speed. One that is
 * known to complain and then to wait for ever is watched for `watchedMs` after that.
 */
export async function load(
  context: TestContext,
  loader: Loader,
  { url, token, projectId }: Target,
  rootId: string,
  watchedMs?: number,
): Promise<Loaded> {
  const folder = temporaryFolder(context)
  await symlink(
    required('STOWAGE_TEST_LOADERS', 'the node_modules folder with the loaders'),
    join(folder, 'node_modules'),
  )
  const out = join(folder, 'out')
  await mkdir(out)
  await writeFile(join(folder, 'load.mjs'), `${ITERATORS[loader]}\n${LOAD}`)
  await runClient(process.execPath, [join(folder, 'load.mjs')], {
    SERVER: url,
    PROJECT: projectId,
    ROOT: rootId,
    TOKEN: token,
    OUT: out,
    LIMIT: String(LIMIT_MS),
    WATCHED: String(watchedMs ?? ''),
  })
  const [received, given, end] = await Promise.all(
    ['received', 'given', 'end'].map((name) => readFile(join(out, name), 'utf8')),
  )
  return {
    received: linesById(received),
    given: linesById(given),
    ...(JSON.parse(end) as Pick<Loaded, 'end' | 'missing' | 'complaints'>),
  }
}
