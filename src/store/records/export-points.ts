import { pauseBeforeRetry } from '../../async/backoff.ts'
import type { Environment } from '../../environment.ts'
import type { ObjectCursor } from '../../object/graph-store.ts'
import type { Entry, Expectation, RecordStore } from '../../storage/backend.ts'
import { ByteWriter } from '../bytes/byte-codec.ts'
import { exportPointKey, keyBounds, keyParts, parseHex } from './keys.ts'
import type { ProjectView, StoredProject } from './project-view.ts'
import { readHead, viewOf } from './projects.ts'
import { open, RECORD_VERSION, seal } from './seal.ts'

/**
 * A moment in the history of a project at which a run of pages began. Its id is random and is written down with it, so
 * only the history that contains this moment has the point.
 */
export interface ExportPoint {
  /** Points of a project are numbered. */
  readonly number: number
  /** 16 hex digits: 64 random bits. */
  readonly id: string
  /** The project's next sequence number, its layout and the store's epoch at that moment. */
  readonly sequence: number
  readonly layout: number
  readonly epoch: number
}

/** What a cursor says of the history that it belongs to. */
type ExportPlace = Pick<ObjectCursor, 'generation' | 'point'>

/** A run that begins: the project as it is, and the point. */
export interface BegunRun {
  readonly project: ProjectView
  readonly point: ExportPoint
}

/**
 * Everything that was written so many epochs before a point, about a day, certainly lies before it: a commit may carry
 * an epoch that was looked up a while before.
 */
export const SETTLED_EPOCHS = 144

/** Points of a project that are kept: if one begins each minute, the oldest is ten weeks old. */
export const EXPORT_POINTS_MAX = 100_000

const ID_BYTES = 8
const TRIES_MAX = 20
/** Points that could not be written, in this process. */
const UNWRITTEN_MAX = 1_000

interface LastPoints {
  readonly last: number
  readonly newest: ExportPoint | undefined
  readonly before: ExportPoint | undefined
}

interface PointParts {
  readonly records: RecordStore
  readonly environment: Environment
  /** A recent epoch of the store. */
  readonly recentEpoch: () => Promise<number>
}

/** The points of all projects of a store. */
export class ExportPoints {
  readonly #parts: PointParts
  readonly #unwritten = new Set<string>()

  constructor(parts: PointParts) {
    this.#parts = parts
  }

  /**
   * The point of this moment, which is written unless the last one will do. `undefined` if the project does not exist.
   * A storage that takes no writes, such as a full disk, must not keep anybody from reading it: then this process alone
   * knows the point.
   */
  async begin(projectId: string, signal: AbortSignal): Promise<BegunRun | undefined> {
    const { records, environment, recentEpoch } = this.#parts
    const epoch = await recentEpoch()
    for (let tries = 1; ; tries++) {
      const { key, bytes, head } = await readHead(records, projectId, signal)
      if (head === undefined || head.removed) return undefined
      const project = viewOf(projectId, head)
      const { last, newest, before } = await this.#lastOf(project, signal)
      if (newest !== undefined && stillHolds(newest, before, { ...project, epoch })) return { project, point: newest }
      const { sequence, layout } = project
      const id = Buffer.from(environment.randomBytes(ID_BYTES)).toString('hex')
      const point = { number: last + 1, id, sequence, layout, epoch }
      const outcome = await this.#put(project, point, { key, value: bytes }, signal)
      if (outcome === 'written') return { project, point }
      if (outcome === 'failed' || tries === TRIES_MAX) {
        this.#remember(nameOf(project, point))
        return { project, point }
      }
      await pauseBeforeRetry(tries, environment)
    }
  }

  /** Whether the place lies in the history of the project. */
  async has(project: StoredProject, { generation, point }: ExportPlace, signal: AbortSignal): Promise<boolean> {
    if (generation !== project.generation) return false
    if (this.#unwritten.has(nameOf(project, point))) return true
    const key = exportPointKey(project.projectId, project.generation, point.number)
    const [value] = await this.#parts.records.getMany([key], { signal })
    return value !== undefined && readable({ key, value })?.id === point.id
  }

  /** The number of the last point, that point and the one before it, as far as they are readable. */
  async #lastOf({ projectId, generation }: StoredProject, signal: AbortSignal): Promise<LastPoints> {
    const found: Entry[] = []
    const bounds = { ...keyBounds('exportPoint', projectId, generation), reverse: true, limit: 2 }
    for await (const entries of this.#parts.records.range(bounds, { signal })) found.push(...entries)
    const [newest, before] = found.map(readable)
    return { last: found.length === 0 ? 0 : numberOf(found[0].key), newest, before }
  }

  /** The commit expects the project's record, so that nothing is left behind the sweep of a removed project. */
  async #put(
    { projectId, generation }: StoredProject,
    point: ExportPoint,
    head: Expectation,
    signal: AbortSignal,
  ): Promise<'written' | 'refused' | 'failed'> {
    const key = exportPointKey(projectId, generation, point.number)
    const surplus = point.number - EXPORT_POINTS_MAX
    try {
      const { ok } = await this.#parts.records.commit(
        {
          put: [exportPointEntry(key, point)],
          remove: surplus < 1 ? [] : [exportPointKey(projectId, generation, surplus)],
          expect: [head, { key, value: undefined }],
        },
        { signal },
      )
      return ok ? 'written' : 'refused'
    } catch {
      signal.throwIfAborted()
      return 'failed'
    }
  }

  #remember(name: string): void {
    this.#unwritten.add(name)
    if (this.#unwritten.size <= UNWRITTEN_MAX) return
    const [oldest] = this.#unwritten
    this.#unwritten.delete(oldest)
  }
}

/**
 * Whether the last point serves for this moment, too: nothing was uploaded, moved or condemned since. Once it is about a
 * day later, one more point is written for the same place, because all that was written before is settled then.
 */
function stillHolds(
  newest: ExportPoint,
  before: ExportPoint | undefined,
  now: Pick<ExportPoint, 'sequence' | 'layout' | 'epoch'>,
): boolean {
  const isHere = (point: ExportPoint | undefined): boolean =>
    point?.sequence === now.sequence && point.layout === now.layout
  return isHere(newest) && (isHere(before) || now.epoch - newest.epoch <= SETTLED_EPOCHS)
}

function nameOf({ projectId, generation }: StoredProject, { number, id }: ObjectCursor['point']): string {
  return `${generation} ${number} ${id} ${projectId}`
}

function exportPointEntry(key: Uint8Array, { id, sequence, layout, epoch }: ExportPoint): Entry {
  const writer = new ByteWriter(32).u8(RECORD_VERSION).bytes(Buffer.from(id, 'hex'))
  return { key, value: seal(key, writer.u48(sequence).u48(layout).u32(epoch)) }
}

export function decodeExportPoint(key: Uint8Array, value: Uint8Array): ExportPoint {
  const reader = open(key, value, 'the record of an export')
  const id = reader.bytes(ID_BYTES).toString('hex')
  return { number: numberOf(key), id, sequence: reader.u48(), layout: reader.u48(), epoch: reader.u32() }
}

/** A damaged point, which a check reports, costs an incremental export and nothing more. */
function readable({ key, value }: Entry): ExportPoint | undefined {
  try {
    return decodeExportPoint(key, value)
  } catch {
    return undefined
  }
}

function numberOf(key: Uint8Array): number {
  return parseHex(keyParts(key)[2])
}
