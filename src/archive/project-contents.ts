import { createHash } from 'node:crypto'
import type { RemoteProject } from './remote-project.ts'
import { sourceItems } from './source-records.ts'

/** A number of things of one kind, and their digest: hex digits. Equal things have equal digests. */
export interface ContentSum {
  readonly count: number
  readonly sha256: string
}

/** Everything of a project that a copy takes along, in sums. */
export interface ProjectContents {
  /** In any order: compaction changes it. */
  readonly objects: ContentSum
  /** Pins, models, versions, automations, annotations, logs, files and ended runs, by their kind. */
  readonly records: Readonly<Record<string, ContentSum>>
}

const LINE_FEED = 0x0a
const WORDS = 8

/** Reads all of a project, in bounded memory. Secrets are left out: each server seals them on its own. */
export async function projectContents(project: RemoteProject): Promise<ProjectContents> {
  const objects = new UnorderedDigest()
  for await (const { lines } of project.objectPages(null)) {
    for (let start = 0; start < lines.length;) {
      const end = lines.indexOf(LINE_FEED, start)
      objects.add(lines.subarray(start, end))
      start = end + 1
    }
  }
  const records = new Map<string, UnorderedDigest>()
  for await (const item of sourceItems(project)) {
    const kind = 'record' in item ? item.record.kind : 'artifact'
    const text =
      'record' in item
        ? JSON.stringify(item.record.value)
        : JSON.stringify([item.artifact, await sha256Of(project.artifact(item.artifact.id))])
    const digest = records.get(kind) ?? new UnorderedDigest()
    records.set(kind, digest)
    digest.add(Buffer.from(text))
  }
  return {
    objects: objects.sum(),
    records: Object.fromEntries(
      [...records].sort(([one], [other]) => (one < other ? -1 : 1)).map(([kind, digest]) => [kind, digest.sum()]),
    ),
  }
}

/** The first kind in which two projects differ, in words; `undefined` if they are equal. */
export function differenceOf(from: ProjectContents, to: ProjectContents): string | undefined {
  const none: ContentSum = { count: 0, sha256: '' }
  const kinds = new Set([...Object.keys(from.records), ...Object.keys(to.records)])
  const pairs: [string, ContentSum, ContentSum][] = [
    ['object', from.objects, to.objects],
    ...[...kinds].map((kind): [string, ContentSum, ContentSum] => [
      kind,
      from.records[kind] ?? none,
      to.records[kind] ?? none,
    ]),
  ]
  for (const [kind, one, other] of pairs) {
    if (one.count !== other.count)
      return `the source has ${one.count} of the kind "${kind}", and the target ${other.count}`
    if (one.sha256 !== other.sha256) return `${one.count} of the kind "${kind}" are in both, and not all are equal`
  }
  return undefined
}

/** The sum of the SHA-256 of each item, modulo 2^256, so that the order does not matter. */
class UnorderedDigest {
  readonly #words = new Uint32Array(WORDS)
  #count = 0

  add(item: Uint8Array): void {
    const digest = createHash('sha256').update(item).digest()
    let carry = 0
    for (let word = 0; word < WORDS; word++) {
      const sum = this.#words[word] + digest.readUInt32LE(4 * word) + carry
      this.#words[word] = sum
      carry = sum > 0xffff_ffff ? 1 : 0
    }
    this.#count++
  }

  sum(): ContentSum {
    const bytes = Buffer.alloc(4 * WORDS)
    this.#words.forEach((word, at) => bytes.writeUInt32LE(word, 4 * at))
    return { count: this.#count, sha256: bytes.toString('hex') }
  }
}

async function sha256Of(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}
