import { memoryBackend } from '../../adapters/memory/index.ts'
import type { AutomationExtension, RunStart } from '../../src/automation-server/index.ts'
import { AUTOMATION_ID, RUN_ID } from '../../src/automation-server/schemas/openapi/examples.ts'
import { archives } from '../../src/archive/index.ts'
import { type CommonServiceOptions, type ObjectService, openAccess, StowageError } from '../../src/index.ts'
import { PROJECT_ID } from '../../src/openapi/objects/examples.ts'
import { inProcess, SECRET_KEY } from '../automation-server/support.ts'
import type { Sent } from '../mounts/ask.ts'
import { exampleService, makeExamples, workOfExample } from './automated.ts'

/** What only a run that has not ended takes. */
const OF_RUNS_UNDER_WAY = new RegExp(`/runs/${RUN_ID}/(?:report|lease|versions|artifacts|cancel)(?:[?]|$)`)
const OF_RUNS_THEMSELVES = new RegExp(`/runs/${RUN_ID}/(?:report|lease|versions|artifacts)(?:[?]|$)`)

/** A service whose runs end by themselves, but for one that asks for what only runs may ask. */
export class FuzzedAutomation {
  readonly service: ObjectService
  readonly #extension: AutomationExtension
  #ids: ReadonlyMap<string, string> = new Map()
  #endedRunId = ''
  #held: Promise<RunStart> | undefined
  #begun: ((start: RunStart) => void) | undefined
  #release: () => void = () => undefined

  private constructor(options: Partial<CommonServiceOptions<unknown>>) {
    const executor = inProcess(async (start, stopped) => {
      if (start.run.triggeredBy.kind === 'version') return workOfExample(start)
      const begun = this.#begun
      this.#begun = undefined
      begun?.(start)
      if (begun === undefined) await start.backend.report({ sequence: 1, status: 'succeeded', message: '' })
      else
        await Promise.race([
          stopped,
          new Promise<void>((resolve) => {
            this.#release = resolve
          }),
        ])
    })
    const { service, extension } = exampleService(
      memoryBackend(),
      executor,
      { runMsMax: 60_000, concurrency: 4, limits: { reportBytesMax: 100_000, artifactBytesMax: 100_000 } },
      { access: openAccess(), clock: Date, ...options },
      [archives({ secretKeys: [SECRET_KEY] })],
    )
    this.service = service
    this.#extension = extension
  }

  static async start(options: Partial<CommonServiceOptions<unknown>>): Promise<FuzzedAutomation> {
    const fuzzed = new FuzzedAutomation(options)
    const { runId, ids } = await makeExamples(fuzzed.service, fuzzed.#extension)
    fuzzed.#endedRunId = runId
    fuzzed.#ids = ids
    return fuzzed
  }

  /**
   * The request with the ids of this server; what only a run may ask, or is done to it, is about one that has not
   * ended.
   */
  async real(sent: Sent): Promise<Sent> {
    const isOwn = OF_RUNS_THEMSELVES.test(sent.path)
    const held = OF_RUNS_UNDER_WAY.test(sent.path) ? await this.#heldRun() : undefined
    const replaced = (text: string): string =>
      [...this.#ids, [RUN_ID, held?.run.id ?? this.#endedRunId] as const].reduce(
        (changed, [from, to]) => changed.replaceAll(from, to),
        text,
      )
    const { path, headers = {}, body } = sent
    const authorization: Readonly<Record<string, string>> =
      held === undefined || !isOwn || 'authorization' in headers
        ? {}
        : { authorization: `Bearer ${held.runFile.speckleToken}` }
    return {
      ...sent,
      path: replaced(path),
      headers: { ...headers, ...authorization },
      ...(body === undefined ? {} : { body: Buffer.from(replaced(Buffer.from(body).toString('latin1')), 'latin1') }),
    }
  }

  async #heldRun(): Promise<RunStart> {
    const { runs } = this.#extension.project(PROJECT_ID)
    const held = await this.#held
    const status = held === undefined ? undefined : (await runs.get(held.run.id)).status
    if (held !== undefined && (status === 'pending' || status === 'initializing' || status === 'running')) return held
    this.#release()
    await this.#extension.idle()
    try {
      return await this.#startHeld()
    } catch (error) {
      // A request has removed the automation, or deleted its model or version.
      if (!(error instanceof StowageError) || !['not_found', 'conflict'].includes(error.code)) throw error
    }
    await this.#remake()
    return this.#startHeld()
  }

  async #startHeld(): Promise<RunStart> {
    const begun = new Promise<RunStart>((resolve) => {
      this.#begun = resolve
    })
    await this.#extension.project(PROJECT_ID).runs.start(this.#ids.get(AUTOMATION_ID) ?? '')
    this.#held = begun
    return begun
  }

  /** The examples once more, in the place of all automations: a request has removed or deleted some of theirs. */
  async #remake(): Promise<void> {
    const { automations } = this.#extension.project(PROJECT_ID)
    for (const { id } of (await automations.list({ limit: 1_000 })).items) await automations.remove(id)
    const { runId, ids } = await makeExamples(this.service, this.#extension)
    this.#endedRunId = runId
    this.#ids = ids
  }
}
