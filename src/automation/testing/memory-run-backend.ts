import { randomBytes } from 'node:crypto'
import type { Client } from '../../client/client.ts'
import { StowageError } from '../../errors.ts'
import type { NewArtifact, NewVersion, RunBackend, SignalOptions, TriggeringVersion } from '../runtime/run-backend.ts'
import {
  type JsonObject,
  type LogLine,
  canTransition,
  type Annotation,
  type RunReport,
  type RunStatus,
} from '../author/run-data.ts'
import { checkName } from '../runtime/run/texts.ts'

/** A version that a run made. */
export interface TestVersion {
  /** Names the version. */
  readonly id: string
  /** The project of the model. */
  readonly projectId: string
  /** The model of the version. */
  readonly modelId: string
  /** The root of the graph that the version consists of. */
  readonly rootObjectId: string
  /** The message that the function gave. */
  readonly message: string
}

/** A file that a run stored. */
export interface TestArtifact {
  /** Names the artifact. */
  readonly id: string
  /** The name of the file. */
  readonly name: string
  /** The content of the file. */
  readonly bytes: Uint8Array
}

/** The reports of a run so far. */
export interface ReportedRun {
  readonly status: RunStatus
  readonly message: string
  readonly result: JsonObject | undefined
  readonly progress: RunReport['progress']
  readonly annotations: readonly Annotation[]
  readonly logs: readonly LogLine[]
  readonly versions: readonly TestVersion[]
  readonly artifacts: readonly TestArtifact[]
}

export interface MemoryRunBackendOptions {
  readonly client: Client
  readonly projectId: string
  readonly trigger: TriggeringVersion
  /** 268,435,456 by default. */
  readonly artifactBytesMax?: number
}

const ARTIFACT_BYTES_MAX = 268_435_456

/** Keeps the reports of one run in memory, by the rules of a server. */
export class MemoryRunBackend implements RunBackend {
  readonly client: Client
  readonly #options: MemoryRunBackendOptions
  readonly #annotations: Annotation[] = []
  readonly #logs: LogLine[] = []
  readonly #versions = new Map<string, TestVersion>()
  readonly #artifacts = new Map<string, TestArtifact>()
  #sequence = 0
  #status: RunStatus = 'pending'
  #message = ''
  #result: JsonObject | undefined
  #progress: RunReport['progress']

  constructor(options: MemoryRunBackendOptions) {
    this.client = options.client
    this.#options = options
  }

  get reported(): ReportedRun {
    return {
      status: this.#status,
      message: this.#message,
      result: this.#result,
      progress: this.#progress,
      annotations: [...this.#annotations],
      logs: [...this.#logs],
      versions: [...this.#versions.values()],
      artifacts: [...this.#artifacts.values()],
    }
  }

  async triggeringVersion({ signal }: SignalOptions = {}): Promise<TriggeringVersion> {
    signal?.throwIfAborted()
    return this.#options.trigger
  }

  async report(
    { sequence, status, message = '', result, progress, annotations = [], logs = [] }: RunReport,
    { signal }: SignalOptions = {},
  ): Promise<void> {
    signal?.throwIfAborted()
    if (sequence <= this.#sequence) return
    if (status !== undefined ? !canTransition(this.#status, status) : !canTransition(this.#status, 'succeeded')) {
      throw new StowageError(
        'conflict',
        `the run is ${this.#status}, and ${status ?? 'a further report'} may not follow`,
      )
    }
    this.#sequence = sequence
    if (status !== undefined) [this.#status, this.#message, this.#result] = [status, message, result]
    if (progress !== undefined) this.#progress = progress
    this.#annotations.push(...annotations)
    this.#logs.push(...logs)
  }

  async createVersion(version: NewVersion, { signal }: SignalOptions = {}): Promise<string> {
    const known = this.#versions.get(version.idempotencyKey)
    if (known !== undefined) return known.id
    this.#checkRunning()
    const { projectId, modelId, rootObjectId, message } = version
    if (projectId !== this.#options.projectId)
      throw new StowageError('forbidden', 'a run is for the project of its model alone')
    await this.#checkClosure(rootObjectId, signal)
    const id = newId()
    this.#versions.set(version.idempotencyKey, { id, projectId, modelId, rootObjectId, message })
    return id
  }

  async storeArtifact(
    { name, content, sizeBytes, idempotencyKey }: NewArtifact,
    { signal }: SignalOptions = {},
  ): Promise<string> {
    const known = this.#artifacts.get(idempotencyKey)
    if (known !== undefined) return known.id
    this.#checkRunning()
    checkName('the name of an artifact', name)
    const { artifactBytesMax = ARTIFACT_BYTES_MAX } = this.#options
    const chunks: Uint8Array[] = []
    let bytes = sizeBytes > artifactBytesMax ? sizeBytes : 0
    if (bytes === 0) {
      for await (const chunk of content) {
        signal?.throwIfAborted()
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes > artifactBytesMax) break
      }
    }
    if (bytes > artifactBytesMax)
      throw new StowageError('artifact_too_large', `the artifact is larger than the limit of ${artifactBytesMax} bytes`)
    const id = newId()
    this.#artifacts.set(idempotencyKey, { id, name, bytes: Buffer.concat(chunks) })
    return id
  }

  /** Ends the run as a server would, for example when a person cancels it. False if the run had already ended. */
  end(status: 'canceled' | 'timeout'): boolean {
    if (!canTransition(this.#status, status)) return false
    this.#status = status
    return true
  }

  #checkRunning(): void {
    if (!canTransition(this.#status, 'succeeded'))
      throw new StowageError('conflict', `the run is ${this.#status}: nothing is added to it any more`)
  }

  async #checkClosure(rootObjectId: string, signal: AbortSignal | undefined): Promise<void> {
    let missing = 0
    const options = {
      onInfo: (info: { readonly missing: number }) => void (missing = info.missing),
      ...(signal === undefined ? {} : { signal }),
    }
    try {
      for await (const batch of this.client.project(this.#options.projectId).graphTexts(rootObjectId, options))
        if (batch.length === 0) break
    } catch (cause) {
      if ((cause as { readonly code?: unknown }).code !== 'not_found') throw cause
      missing = 1
    }
    if (missing > 0)
      throw new StowageError('objects_missing', `${missing} objects of the version are not held by the project`)
  }
}

function newId(): string {
  return randomBytes(16).toString('hex')
}
