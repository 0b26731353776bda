import { createHash } from 'node:crypto'
import { decodeLines } from '../client/download/lines.ts'
import { ClientError } from '../client/common/errors.ts'
import type { ObjectText } from '../client/common/types.ts'
import { createClient } from '../client/client.ts'
import type { Project } from '../client/project.ts'
import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import { checkSubject } from './export-subject.ts'
import { type ProjectAddress, remoteProject } from './remote.ts'
import { RecordSender, type RecordTotals } from './record-sender.ts'
import type { RemoteProject } from './remote-project.ts'
import { type MovedArtifact, sourceItems } from './source-records.ts'
import { temporaryCopy } from './temporary-copy.ts'

/** How far a mirror is. */
export interface MirrorProgress {
  /** Objects that the target was asked about. */
  readonly objects: number
  /** Of these, the objects that the target lacked. */
  readonly sent: number
}

/** The subject of a mirror. */
export interface MirrorOptions {
  /** The roots to copy, from a server that cannot list its contents. */
  readonly roots?: readonly string[]
  /**
   * With the secrets of automations, sealed with the key of the source: only a target with the same key opens them.
   * Needs the right to write at the source.
   */
  readonly hasSealedSecrets?: boolean
  /** Aborts the mirror, which can be repeated. */
  readonly signal?: AbortSignal
  /** Called as objects are copied. */
  readonly onProgress?: (progress: MirrorProgress) => void
}

/** The outcome of a mirror. */
export interface MirrorResult extends MirrorProgress {
  /** Objects that the target holds with another text; that one stays. */
  readonly differing: number
  /** Models, versions, automations and runs; absent if one of the servers has none. */
  readonly records?: RecordTotals
}

const SOURCE_HEX_DIGITS = 32

/**
 * Copies to the target everything of the source that it lacks. Between two Stowage servers that is everything, and
 * models, versions, automations and runs keep their ids; from any other server of the contract it is `roots` with
 * everything below them. A mirror that is started again continues from its last state. It deletes nothing. Throws
 * `ClientError`, `invalid_request` if roots are needed, and `not_found` if the source has no such project.
 */
export async function mirrorProject(
  from: ProjectAddress,
  to: ProjectAddress,
  options: MirrorOptions = {},
): Promise<MirrorResult> {
  const mirror = new Mirror(from, to, options)
  const { roots = [] } = options
  if (roots.length > 0) return mirror.roots(roots)
  if (!(await mirror.source.hasPages()))
    throw new StowageError(
      'invalid_request',
      'the source cannot list its objects; name the roots to copy (--root), or use a server with the extension archives()',
    )
  await checkSubject(mirror.source)
  return mirror.everything()
}

class Mirror {
  readonly source: RemoteProject
  readonly #target: RemoteProject
  readonly #from: Project
  readonly #to: Project
  readonly #options: MirrorOptions
  readonly #tally = { objects: 0, sent: 0, differing: 0 }

  constructor(from: ProjectAddress, to: ProjectAddress, options: MirrorOptions) {
    this.#options = options
    this.source = remoteProject(from, options.signal)
    this.#target = remoteProject(to, options.signal)
    this.#from = createClient(from).project(from.projectId)
    this.#to = createClient(to).project(to.projectId)
  }

  async everything(): Promise<MirrorResult> {
    const takesRecords = await this.#target.takesRecords()
    const begin = takesRecords ? await this.#cursor() : null
    const hasRecords = takesRecords && (await this.source.hasRecords())
    const run = (from: string | null): Promise<MirrorResult> =>
      hasRecords ? this.#withRecords(from) : this.#objectsAlone(from, takesRecords)
    try {
      return await run(begin)
    } catch (error) {
      if (begin === null || !isStale(error)) throw error
      // The source was restored, or removed and created again, or the target lost its contents: all is examined again.
      return await run(null)
    }
  }

  /** Each root after everything below it. */
  async roots(roots: readonly string[]): Promise<MirrorResult> {
    for (const root of roots) {
      const text = await this.#root(root)
      if (text === undefined) throw new ClientError('not_found', `the source has no object ${quoted(root)}`)
      if ((await this.#isWhole(root)) === true) continue
      const claimed = claimedIds(text)
      if (claimed.length > 0) await this.#claimed(claimed)
      // Without claims, or if the source lacks some of the claimed objects, the graph decides.
      if (claimed.length === 0 || !(await this.#isWholeBelow(claimed))) await this.#graph(root)
      await this.#send([text])
      if ((await this.#isWhole(root)) !== false) continue
      await this.#graph(root)
      if ((await this.#isWhole(root)) === false)
        throw new ClientError('objects_missing', `the source lacks objects below ${quoted(root)}`)
    }
    return this.#tally
  }

  get #call(): { readonly signal?: AbortSignal } {
    const { signal } = this.#options
    return signal === undefined ? {} : { signal }
  }

  async #objectsAlone(begin: string | null, keepsMark: boolean): Promise<MirrorResult> {
    await this.#objects(begin, keepsMark)
    return this.#tally
  }

  /** Records that the source had before its objects were read: none names an object that is not among them. */
  async #withRecords(begin: string | null): Promise<MirrorResult> {
    const { hasSealedSecrets = false, signal } = this.#options
    const copy = await temporaryCopy(sourceItems(this.source, { hasSealedSecrets }), signal)
    try {
      await this.#objects(begin, true)
      const sender = new RecordSender(this.#target)
      for await (const item of copy.items()) {
        if ('artifact' in item) await this.#artifact(item.artifact)
        else await sender.send(item.record)
      }
      return { ...this.#tally, records: await sender.end() }
    } finally {
      await copy.remove()
    }
  }

  async #objects(begin: string | null, keepsMark: boolean): Promise<void> {
    for await (const { lines, next } of this.source.objectPages(begin)) {
      for await (const batch of decodeLines(oneChunk(lines), 'a page of objects')) await this.#send(batch)
      if (keepsMark)
        await this.#target.putRecords([{ kind: 'mark', value: { source: this.#sourceId(), cursor: next } }])
    }
  }

  async #cursor(): Promise<string | null> {
    const { cursor } = await this.#target.get('import', 'marks', this.#sourceId())
    return typeof cursor === 'string' ? cursor : null
  }

  #sourceId(): string {
    const { connection, projectId } = this.source.remote
    return createHash('sha256')
      .update(JSON.stringify([connection.url, projectId]))
      .digest('hex')
      .slice(0, SOURCE_HEX_DIGITS)
  }

  async #send(objects: readonly ObjectText[]): Promise<void> {
    const result = await this.#to.upload(objects, { concurrency: 1, ...this.#call })
    this.#tally.objects += result.objects
    this.#tally.sent += result.sent
    this.#tally.differing += result.differing
    this.#options.onProgress?.(this.#tally)
  }

  async #artifact({ id, runId, name }: MovedArtifact): Promise<void> {
    const hash = createHash('sha256')
    for await (const chunk of this.source.artifact(id)) hash.update(chunk)
    await this.#target.putArtifact({ id, runId, name, sha256: hash.digest('hex') }, () =>
      ReadableStream.from(this.source.artifact(id)),
    )
  }

  async #root(root: string): Promise<ObjectText | undefined> {
    try {
      return await this.#from.getText(root, this.#call)
    } catch (error) {
      // Of other servers' errors the status alone is known.
      if (error instanceof ClientError && error.isAnswered && error.statusCode === 404) return undefined
      throw error
    }
  }

  /** The missing ones of these in the target, by lists. */
  async #claimed(ids: readonly string[]): Promise<void> {
    const { missing } = await this.#to.has(ids, this.#call)
    for await (const batch of this.#from.listTexts(missing, this.#call)) await this.#send(batch)
  }

  async #isWholeBelow(ids: readonly string[]): Promise<boolean> {
    return (await this.#to.has(ids, this.#call)).missing.length === 0
  }

  /** Everything below the root, without the root itself. */
  async #graph(root: string): Promise<void> {
    for await (const batch of this.#from.graphTexts(root, this.#call)) {
      const below = batch.filter(({ id }) => id !== root)
      if (below.length > 0) await this.#send(below)
    }
  }

  /**
   * Whether the target has the root with everything below it; `undefined` where it does not have the root, or does not
   * say.
   */
  async #isWhole(root: string): Promise<boolean | undefined> {
    try {
      const info = await this.#to.graphInfo(root, this.#call)
      return info?.closure === undefined ? undefined : info.missing === 0
    } catch (error) {
      // A server of the contract alone may know no HEAD, or answer it like GET without our headers.
      if (error instanceof ClientError && (error.statusCode === 405 || error.code === 'invalid_answer'))
        return undefined
      throw error
    }
  }
}

/** Ids in `__closure`, which names everything below an object. */
function claimedIds({ json }: ObjectText): readonly string[] {
  const { __closure: closure } = JSON.parse(json) as { readonly __closure?: unknown }
  return typeof closure === 'object' && closure !== null ? Object.keys(closure) : []
}

function isStale(error: unknown): boolean {
  return error instanceof ClientError && (error.code === 'conflict' || error.code === 'objects_missing')
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
