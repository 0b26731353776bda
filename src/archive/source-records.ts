import type { MovedRecord, RemoteProject } from './remote-project.ts'

/** A file of a run, and where its bytes are. */
export interface MovedArtifact {
  readonly id: string
  readonly runId: string
  readonly name: string
  readonly sizeBytes: number
}

/** The records of a project besides its objects, in the order in which a target accepts them. */
export type SourceItem = { readonly record: MovedRecord } | { readonly artifact: MovedArtifact }

export interface SourceOptions {
  /** With the secrets of automations, sealed with the key of the server. Needs the right to write. */
  readonly hasSealedSecrets?: boolean
  /** With the secrets sealed for the holder of this public key instead. */
  readonly recipient?: string
  /** Of runs that ended before, only the record is read: annotations, logs and files are known. ISO 8601. */
  readonly runsKnownUntil?: string
}

/** Two reads of the clock of a server that lists its runs at leisure, or of two servers, may differ by this much. */
const CLOCK_MARGIN_MS = 600_000
/** Bytes of JSON of one record of annotations or of a log, about. */
const PART_BYTES = 262_144
/** The capacity of one record on a target. */
const ITEMS_MAX = 1_000
const FINAL_STATUSES: ReadonlySet<unknown> = new Set(['succeeded', 'failed', 'canceled', 'exception', 'timeout'])

type Json = Readonly<Record<string, unknown>>

/**
 * Pins; models, each followed by its versions, the newest first; automations of these models; runs that have ended, the
 * newest first, each after its annotations, its log and its files. Pins come first, so that no retention rule of the
 * target deletes a version whose root is pinned.
 */
export async function* sourceItems(project: RemoteProject, options: SourceOptions = {}): AsyncGenerator<SourceItem> {
  for (const value of (await project.get('pins')).items as readonly Json[]) yield { record: { kind: 'pin', value } }
  const modelIds = new Set<unknown>()
  for await (const models of project.list('models')) {
    for (const model of models) {
      modelIds.add(model.id)
      yield { record: { kind: 'model', value: model } }
      for await (const versions of project.list('models', String(model.id), 'versions'))
        for (const value of versions) yield { record: { kind: 'version', value } }
    }
  }
  const { hasSealedSecrets = false, recipient } = options
  const automations =
    hasSealedSecrets || recipient !== undefined
      ? project.automationsWithSecrets(recipient)
      : project.list('automations')
  // A target refuses automations of models that it lacks, such as deleted ones.
  for await (const page of automations)
    for (const value of page) if (modelIds.has(value.modelId)) yield { record: { kind: 'automation', value } }
  const knownUntilMs = Date.parse(options.runsKnownUntil ?? '') - CLOCK_MARGIN_MS
  for await (const runs of project.list('runs'))
    for (const run of runs) if (FINAL_STATUSES.has(run.status)) yield* runItems(project, run, knownUntilMs)
}

async function* runItems(project: RemoteProject, run: Json, knownUntilMs: number): AsyncGenerator<SourceItem> {
  const runId = String(run.id)
  // `NaN` is before nothing.
  if (!(Date.parse(String(run.endedAt)) < knownUntilMs)) {
    let part = 0
    for await (const items of inParts(project.list('runs', runId, 'annotations')))
      yield { record: { kind: 'annotations', value: { runId, part: part++, items } } }
    let firstLine = 0
    for await (const lines of inParts(project.list('runs', runId, 'logs'))) {
      yield { record: { kind: 'logs', value: { runId, firstLine, lines } } }
      firstLine += lines.length
    }
    for (const { id, name, sizeBytes } of run.artifacts as readonly MovedArtifact[])
      yield { artifact: { id, runId, name, sizeBytes } }
  }
  const { cause: _cause, ...value } = await project.get('runs', runId)
  yield { record: { kind: 'run', value } }
}

/** However the server pages them, the same items make the same parts. */
async function* inParts(pages: AsyncIterable<readonly Json[]>): AsyncGenerator<readonly Json[]> {
  let part: Json[] = []
  let bytes = 0
  for await (const page of pages) {
    for (const item of page) {
      part.push(item)
      bytes += Buffer.byteLength(JSON.stringify(item))
      if (bytes < PART_BYTES && part.length < ITEMS_MAX) continue
      yield part
      part = []
      bytes = 0
    }
  }
  if (part.length > 0) yield part
}
