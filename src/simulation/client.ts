import { once } from 'node:events'
import { Readable } from 'node:stream'
import { gunzipSync, gzipSync } from 'node:zlib'
import { applyDelta, DELTA_MEDIA_TYPE, parseDelta } from '../delta/delta.ts'
import { DeltaEncoder } from '../delta/encode.ts'
import type { ProjectObjects } from '../service/project-objects.ts'
import type { UploadStreamOptions } from '../service/project-streams.ts'
import type { PlannedObject } from './models.ts'
import type { PlannedDownload, PlannedLookUp, PlannedUpload } from './operations.ts'
import { type ProjectOracle, Violation } from './oracle.ts'
import type { QuotaBook } from './quota-book.ts'
import type { Span } from './span.ts'
import type { SimulatedProcess } from './process.ts'
import type { RootBook } from './root-book.ts'
import { closureBytes, type ServerLife } from './server.ts'

/** The objects of a root that a client has from an earlier download. */
interface Downloaded {
  readonly span: Span
  readonly texts: ReadonlyMap<string, string>
  readonly closureDigest: string | undefined
}

/** The target of an operation of a client. */
export interface Destination {
  readonly life: ServerLife
  readonly projectId: string
  readonly project: ProjectObjects
  readonly oracle: ProjectOracle
  readonly book: RootBook
  /** Where the project has a quota. */
  readonly quota: QuotaBook | undefined
  readonly signal: AbortSignal
}

const BODY_CHUNK_BYTES = 16_384
const NOTHING: ReadonlyMap<string, string> = new Map()
/** Of a client that did not keep the digest: it fits no closure. */
const NO_DIGEST = '0'.repeat(32)

/**
 * Performs the operations of clients, and reports their outcomes to the oracle. Remembers its downloads, for `have` and
 * for deltas.
 */
export class SimulatedClient {
  readonly #process: SimulatedProcess
  readonly #downloaded = new Map<string, Downloaded>()

  constructor(process: SimulatedProcess) {
    this.#process = process
  }

  /** `begin` is called before anything is sent, with the texts and the length of the body that tells of them. */
  async upload(
    planned: PlannedUpload,
    to: Destination,
    begin: (texts: ReadonlyMap<string, string>, bodyBytes: number) => void,
  ): Promise<void> {
    const objects = planned.asks ? await this.#lacking(planned.objects, to) : planned.objects
    const texts = new Map(objects.map(({ id, json }) => [id, json]))
    const older = planned.olderRootId === undefined ? undefined : this.#downloaded.get(planned.olderRootId)
    const base = planned.isBroken || (older && to.oracle.isRemovedSince(older.span)) ? undefined : older
    const json = `[${objects.map((object) => (base ? deltaOf(object, base.texts) : object.json)).join()}]`
    const whole = planned.isZipped && !base ? gzipSync(json, { level: 1 }) : Buffer.from(json)
    begin(texts, whole.length)
    if (objects.length === 0) return
    const body = this.#bodyOf(planned.isBroken ? whole.subarray(0, whole.length >> 1) : whole)
    const type = planned.isZipped ? 'application/gzip' : 'application/json'
    if (base || planned.isLengthKnown === true) {
      const contentLength = planned.isLengthKnown === true ? { contentLength: whole.length } : {}
      await this.#send(body, { contentType: base ? DELTA_MEDIA_TYPE : type, ...contentLength }, to)
    } else {
      const { objects: came } = await to.project.upload(body, type, { signal: to.signal })
      if (came !== texts.size) throw new Violation(`${texts.size} objects were sent, ${came} came`)
    }
  }

  async download(planned: PlannedDownload, to: Destination): Promise<void> {
    const { rootId, form, haveRootId } = planned
    const { oracle, signal } = to
    const span = oracle.begin()
    const had = haveRootId === undefined ? undefined : this.#downloaded.get(haveRootId)
    const have =
      had === undefined
        ? undefined
        : { id: haveRootId as string, ...(isBare(planned, oracle) ? {} : { digest: had.closureDigest ?? NO_DIGEST }) }
    const selected: { closureDigest?: string | undefined } = {}
    let texts: Map<string, string>
    try {
      texts =
        form === 'records'
          ? await recordsIn(
              to.project.graph(rootId, { signal, ...(have === undefined ? {} : { have: [wordOf(have)] }) }),
            )
          : await this.#bytes(planned, to, have, selected)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'not_found') throw error
      oracle.end(span)
      oracle.sawNot(rootId, span)
      return
    }
    oracle.end(span)
    const base = had?.texts ?? NOTHING
    const isOfOneProject = had === undefined || !oracle.isRemovedSince(had.span)
    // What the client has may be of a project that is gone: deltas on it mean nothing.
    if (form === 'deltas' && !isOfOneProject) return
    const undone = form === 'deltas' ? withoutDeltas(texts, base) : texts
    oracle.sawClosure(rootId, undone, isOfOneProject ? base : undefined, span)
    if (have === undefined) this.#downloaded.set(rootId, { span, texts: undone, closureDigest: selected.closureDigest })
  }

  async lookUp({ kind, ids }: PlannedLookUp, { project, oracle, signal }: Destination): Promise<void> {
    const span = oracle.begin()
    if (kind === 'has') {
      const held = await project.has(ids, { signal })
      oracle.end(span)
      tellHeld(oracle, ids, held, span)
    } else if (kind === 'single') {
      const record = await project.get(ids[0], { signal })
      oracle.end(span)
      tell(oracle, ids[0], record && { text: Buffer.from(record.json).toString() }, span)
    } else {
      const texts = new Map<string, string>()
      for await (const { id, json } of project.createObjectsStream(ids, { objectMode: true, signal }) as AsyncIterable<{
        readonly id: string
        readonly json: Uint8Array
      }>)
        texts.set(id, Buffer.from(json).toString())
      oracle.end(span)
      for (const id of ids) tell(oracle, id, texts.has(id) ? { text: texts.get(id) } : undefined, span)
    }
  }

  /** The objects that the server reports as missing. */
  async #lacking(objects: readonly PlannedObject[], to: Destination): Promise<readonly PlannedObject[]> {
    const span = to.oracle.begin()
    const ids = objects.map(({ id }) => id)
    const held = await to.project.has(ids, { signal: to.signal })
    to.oracle.end(span)
    tellHeld(to.oracle, ids, held, span)
    return objects.filter(({ id }) => !held.has(id))
  }

  async #bytes(
    { rootId, form, projectId, pauseMs }: PlannedDownload,
    to: Destination,
    have: { readonly id: string; readonly digest?: string | undefined } | undefined,
    selected: { closureDigest?: string | undefined },
  ): Promise<Map<string, string>> {
    const chunks: Uint8Array[] = []
    const bytes = closureBytes(to.life, projectId, rootId, {
      signal: to.signal,
      coding: form === 'gzip' ? 'gzip' : 'identity',
      ...(have === undefined ? {} : { have: [have] }),
      deltas: form === 'deltas',
      onSelected: (closureDigest) => (selected.closureDigest = closureDigest),
    })
    for await (const chunk of bytes) {
      chunks.push(Uint8Array.from(chunk))
      // A slow reader: others get their turn while the answer is on its way.
      if (pauseMs === undefined) await this.#process.nextTurn()
      else await new Promise<void>((resolve) => void this.#process.setTimer(pauseMs, resolve))
    }
    const whole = Buffer.concat(chunks)
    return linesIn(form === 'gzip' ? gunzipSync(whole).toString() : whole.toString())
  }

  async *#bodyOf(whole: Uint8Array): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < whole.length; at += BODY_CHUNK_BYTES) {
      await this.#process.nextTurn()
      yield whole.subarray(at, at + BODY_CHUNK_BYTES)
    }
  }

  async #send(
    body: AsyncIterable<Uint8Array>,
    form: Pick<UploadStreamOptions, 'contentType' | 'contentLength'>,
    { project, signal }: Destination,
  ): Promise<void> {
    const stream = project.createUploadStream({ ...form, signal })
    Readable.from(body).pipe(stream)
    await once(stream, 'finish')
  }
}

/**
 * Half of the clients leave the digest out, as the documentation lets them: not where a root may have been collected
 * and uploaded again since they downloaded it.
 */
function isBare({ index }: PlannedDownload, { collections }: ProjectOracle): boolean {
  return index % 2 === 0 && collections.isEmpty
}

function wordOf({ id, digest }: { readonly id: string; readonly digest?: string | undefined }): string {
  return digest === undefined ? id : `${id}@${digest}`
}

function tellHeld(oracle: ProjectOracle, ids: readonly string[], held: ReadonlySet<string>, span: Span): void {
  for (const id of ids)
    if (held.has(id)) oracle.saw(id, undefined, span)
    else oracle.sawNotHeld(id, span)
}

function tell(
  oracle: ProjectOracle,
  id: string,
  seen: { readonly text?: string | undefined } | undefined,
  span: Span,
): void {
  if (seen === undefined) oracle.sawGone(id, span)
  else oracle.saw(id, seen.text, span)
}

export async function recordsIn(
  batches: AsyncIterable<readonly { readonly id: string; readonly json: Uint8Array }[]>,
): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for await (const batch of batches) for (const { id, json } of batch) addOnce(texts, id, Buffer.from(json).toString())
  return texts
}

function linesIn(text: string): Map<string, string> {
  const texts = new Map<string, string>()
  for (const line of text.split('\n').slice(0, -1)) {
    const tab = line.indexOf('\t')
    addOnce(texts, line.slice(0, tab), line.slice(tab + 1))
  }
  return texts
}

export function addOnce(texts: Map<string, string>, id: string, text: string): void {
  if (texts.has(id)) throw new Violation(`${id} was sent twice`)
  texts.set(id, text)
}

function withoutDeltas(lines: ReadonlyMap<string, string>, base: ReadonlyMap<string, string>): Map<string, string> {
  const texts = new Map<string, string>()
  for (const [id, line] of lines) {
    if (!line.startsWith('[')) {
      texts.set(id, line)
      continue
    }
    const delta = parseDelta(line)
    const baseText = base.get(delta.baseId)
    if (baseText === undefined)
      throw new Violation(`${id} is a delta on ${delta.baseId}, which the client does not have`)
    texts.set(id, Buffer.from(applyDelta(delta, Buffer.from(baseText), 10_000_000)).toString())
  }
  return texts
}

/** The object as a delta on its predecessor, if that is shorter. */
function deltaOf({ id, json }: PlannedObject, older: ReadonlyMap<string, string>): string {
  const place = id.slice(0, id.lastIndexOf('-'))
  const baseId = [...older.keys()].find((other) => other !== id && other.slice(0, other.lastIndexOf('-')) === place)
  const text = Buffer.from(json)
  if (baseId === undefined) return json
  const encoder = new DeltaEncoder(baseId, Buffer.from(older.get(baseId) as string), text)
  while (!encoder.advance(1_048_576)) continue
  return encoder.take() ?? json
}
