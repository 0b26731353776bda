import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { linkedAbort } from '../../../async/abort.ts'
import type { Client } from '../../../client/client.ts'
import type { DagObject } from '../../../client/common/types.ts'
import { type Clock, type Environment, randomId } from '../../../environment.ts'
import { StowageError } from '../../../errors.ts'
import type { AutomationContext, NewVersionOptions, RunLog } from '../../author/context.ts'
import type { NewArtifact, RunBackend, TriggeringVersion } from '../run-backend.ts'
import type { AutomationRunData, JsonObject, LogLevel, AnnotationLevel, RunStatus } from '../../author/run-data.ts'
import { annotationsOf } from './annotations.ts'
import type { PendingCalls } from './pending-calls.ts'
import type { Mark } from './marks.ts'
import type { Reporter } from './reporter.ts'
import { type RunRetryOptions, withRetries } from './retry.ts'
import type { SecretRedactor } from './secret-redactor.ts'
import {
  checkFileName,
  checkName,
  checkText,
  cut,
  describeThrown,
  lineText,
  messageText,
  shown,
  shownWithout,
  TEXT_LIMITS,
} from './texts.ts'

export interface RunContextParts {
  readonly backend: RunBackend
  readonly runData: AutomationRunData
  readonly reporter: Reporter
  readonly calls: PendingCalls
  readonly mark: Mark
  readonly redactor: SecretRedactor
  readonly clock: Clock
  readonly environment: Environment
  readonly retry: RunRetryOptions
  /** Told to the function. */
  readonly signal: AbortSignal
  /** Aborts everything that the run does, at the latest when its grace period ends. */
  readonly ended: AbortSignal
  readonly onLine?: (level: LogLevel, line: string) => void
}

type AnnotationArguments = Parameters<AutomationContext['attachErrorToObjects']>

export class RunContext<Inputs> implements AutomationContext<Inputs> {
  readonly automationRunData: AutomationRunData
  readonly serviceClient: Client
  readonly functionInputs: Inputs
  readonly signal: AbortSignal
  readonly log: RunLog
  readonly #parts: RunContextParts
  readonly #reading: AbortSignal
  #trigger: Promise<TriggeringVersion> | undefined

  constructor(parts: RunContextParts, inputs: Inputs) {
    this.#parts = parts
    this.automationRunData = parts.runData
    this.serviceClient = parts.backend.client
    this.functionInputs = inputs
    this.signal = parts.signal
    // Nothing needs to be unlinked: both signals are those of the run.
    this.#reading = linkedAbort(parts.signal, parts.ended).controller.signal
    this.log = runLog(parts)
  }

  get status(): RunStatus {
    return this.#parts.mark.given?.status ?? 'running'
  }

  receiveVersion(): Promise<DagObject> {
    return this.#parts.calls.run('receiveVersion', async () => {
      const { rootObjectId } = await this.#triggeringVersion()
      return this.serviceClient
        .project(this.automationRunData.projectId)
        .receive(rootObjectId, { signal: this.#reading })
    })
  }

  objects(): AsyncIterable<readonly DagObject[]> {
    this.#parts.calls.checkOpen('objects')
    return this.#objects()
  }

  markRunSuccess(message: string, result?: JsonObject | null): void {
    this.#parts.calls.checkOpen('markRunSuccess')
    this.#parts.mark.set('succeeded', message, result)
  }

  markRunFailed(message: string, result?: JsonObject | null): void {
    this.#parts.calls.checkOpen('markRunFailed')
    this.#parts.mark.set('failed', message, result)
  }

  markRunException(message: string | Error): void {
    this.#parts.calls.checkOpen('markRunException')
    this.#parts.mark.set('exception', message instanceof Error ? describeThrown(message) : message)
    if (message instanceof Error) this.log.error(shownWithout(this.#parts.redactor, message))
  }

  attachErrorToObjects(...annotation: AnnotationArguments): void {
    this.#attach('ERROR', ...annotation)
  }

  attachWarningToObjects(...annotation: AnnotationArguments): void {
    this.#attach('WARNING', ...annotation)
  }

  attachSuccessToObjects(...annotation: AnnotationArguments): void {
    this.#attach('SUCCESS', ...annotation)
  }

  attachInfoToObjects(...annotation: AnnotationArguments): void {
    this.#attach('INFO', ...annotation)
  }

  createNewVersionInProject(
    projectId: string,
    data: object,
    message: string,
    options: NewVersionOptions = {},
  ): Promise<string> {
    const { backend, calls, environment, redactor, ended, retry, runData } = this.#parts
    return calls.run('createNewVersionInProject', async () => {
      checkText('the message of a version', message)
      if (options.modelId === undefined && projectId !== runData.projectId) {
        throw new StowageError('invalid_request', 'a version in another project needs the modelId of its model')
      }
      const modelId = options.modelId ?? (await this.#triggeringVersion()).modelId
      const { root } = await this.serviceClient.project(projectId).send(data, { signal: ended })
      const version = {
        projectId,
        modelId,
        rootObjectId: root,
        message: messageText(redactor.text(message)),
        idempotencyKey: randomId(environment),
      }
      return withRetries(() => backend.createVersion(version, { signal: ended }), ended, retry, environment)
    })
  }

  storeFileResult(filePath: string, fileName: string): Promise<string> {
    const { backend, calls, environment, redactor, ended, retry } = this.#parts
    return calls.run('storeFileResult', async () => {
      const artifact = await fileArtifact(
        filePath,
        checkFileName(redactor.text(checkName('the name of a file result', fileName))),
        environment,
      )
      return withRetries(() => backend.storeArtifact(artifact, { signal: ended }), ended, retry, environment)
    })
  }

  progress(fraction: number, message?: string): void {
    const { calls, reporter, redactor } = this.#parts
    calls.checkOpen('progress')
    if (!(fraction >= 0 && fraction <= 1))
      throw new RangeError(`progress is ${shown(fraction)}; it must be a number between 0 and 1`)
    reporter.progress({
      fraction,
      ...(message === undefined || message.trim() === '' ? {} : { message: lineText(redactor.text(message)) }),
    })
  }

  /** Between batches the function waits for its own annotations, so that they do not pile up. */
  async *#objects(): AsyncGenerator<readonly DagObject[]> {
    const { calls, reporter } = this.#parts
    const { rootObjectId } = await this.#triggeringVersion()
    for await (const batch of this.serviceClient
      .project(this.automationRunData.projectId)
      .graph(rootObjectId, { signal: this.#reading })) {
      await reporter.ready()
      calls.checkOpen('objects')
      yield batch
    }
  }

  #attach(level: AnnotationLevel, ...[category, objects, message, metadata]: AnnotationArguments): void {
    const { calls, reporter, redactor } = this.#parts
    calls.checkOpen('annotations')
    for (const result of annotationsOf({ level, category, objects, message, metadata }, redactor))
      reporter.result(result)
  }

  #triggeringVersion(): Promise<TriggeringVersion> {
    const { backend, ended, environment, retry } = this.#parts
    this.#trigger ??= withRetries(() => backend.triggeringVersion({ signal: ended }), ended, retry, environment).catch(
      (error: unknown) => {
        this.#trigger = undefined
        throw error
      },
    )
    return this.#trigger
  }
}

function runLog({ calls, clock, reporter, redactor, onLine }: RunContextParts): RunLog {
  const write =
    (level: LogLevel) =>
    (message: string, fields?: object): void => {
      calls.checkOpen(`log.${level}`)
      const words = typeof message === 'string' ? redactor.text(message) : shownWithout(redactor, message)
      const line = cut(fields === undefined ? words : `${words} ${shownWithout(redactor, fields)}`, TEXT_LIMITS.lineMax)
      reporter.line({ atMs: clock.now(), level, message: line })
      onLine?.(level, line)
    }
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
}

async function fileArtifact(path: string, name: string, environment: Environment): Promise<NewArtifact> {
  const file = await stat(path)
  if (!file.isFile())
    throw new StowageError('invalid_request', 'a file result must be a file, not a folder or a device')
  return {
    name,
    sizeBytes: file.size,
    idempotencyKey: randomId(environment),
    content: {
      [Symbol.asyncIterator]: () => createReadStream(path)[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>,
    },
  }
}
