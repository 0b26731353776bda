import { type AutomationFunction, defineFunction, RunFailed } from '../../../src/automation/author/function.ts'
import { defineInputs } from '../../../src/automation/author/inputs/define.ts'
import type { FunctionRegistration } from '../../../src/automation-server/runner/executors/definitions.ts'
import type { RunExecutor, RunStart } from '../../../src/automation-server/domain/executor.ts'
import { codeOf } from '../../../src/simulation/expectations.ts'
import { type PlannedVersion, plannedObject } from '../../../src/simulation/models.ts'
import type { SimulatedProcess } from '../../../src/simulation/process.ts'
import type { Random } from '../../../src/simulation/random.ts'
import type { ServerLife } from '../../../src/simulation/server.ts'
import type { Book, Invocation } from './book.ts'

export const PROJECT_ID = 'p'
export const CHECKER = 'checker'
export const BRANCHER = 'brancher'
/** A run takes no longer; some functions would. */
export const RUN_MS_MAX = 60_000

const TRIES = 6
const RETRY_MS = 400
const GRACE_MS = 3_000

/** Everything that the functions of a process work with. */
export interface FunctionParts {
  readonly process: SimulatedProcess
  readonly random: Random
  readonly book: Book
  /** The life of the process that runs it. */
  readonly lifeOf: (process: SimulatedProcess) => ServerLife
}

class NoInputs extends defineInputs({}) {}

/** The functions of a process: one reports through its context, the other makes versions. */
export function functionsOf(parts: FunctionParts): readonly FunctionRegistration[] {
  return [
    { id: CHECKER, release: '1.0.0', function: checker(parts) },
    {
      id: BRANCHER,
      release: '1.0.0',
      name: 'Brancher',
      inputs: { ...NoInputs.toJSONSchema() },
      executor: brancher(parts),
    },
  ]
}

/** Takes its time, annotates, and ends in one of many ways; some ignore that they are to stop. */
function checker({ process, random, book }: FunctionParts): AutomationFunction {
  let count = 0
  return defineFunction(
    async (context) => {
      const runId = context.automationRunData.automationRunId
      const own = random.fork(`checker ${runId} ${++count}`)
      const invocation = begin(book, runId)
      const ending = own.pick(['success', 'success', 'success', 'failed', 'throw', 'nothing', 'ignore'])
      for (let left = own.between(0, 5); left > 0; left--) {
        await pause(process, own.below(own.pick([20, 800, 12_000])))
        if (ending !== 'ignore' && context.signal.aborted) return
        const text = `${process.name} ${runId} ${left}`
        invocation.attached.add(text)
        context.attachInfoToObjects('Checked', ['an-object'], text)
        if (own.chance(0.3)) context.log.info(`checked ${left}`)
        if (own.chance(0.3)) context.progress(1 / (left + 1))
      }
      if (ending === 'ignore') await pause(process, RUN_MS_MAX * own.pick([0.1, 2]))
      if (ending === 'throw') throw new Error('the function broke')
      if (ending === 'failed') throw new RunFailed('a rule is broken')
      if (ending === 'nothing') return
      invocation.hasSucceeded = true
      context.markRunSuccess('checked')
    },
    NoInputs,
    { name: 'Checker', graceMs: GRACE_MS },
  )
}

/** Uploads a new root, makes a version of it, and reports. It repeats what may be repeated. */
function brancher(parts: FunctionParts): RunExecutor {
  let count = 0
  return {
    start: (start) => {
      const stopped = new AbortController()
      const random = parts.random.fork(`brancher ${start.run.id} ${++count}`)
      return { cancel: () => stopped.abort(), ended: branch(parts, start, { random, signal: stopped.signal }) }
    },
  }
}

async function branch(
  { process, book, lifeOf }: FunctionParts,
  { backend, run }: RunStart,
  { random, signal }: { readonly random: Random; readonly signal: AbortSignal },
): Promise<void> {
  const invocation = begin(book, run.id)
  const model = book.models.find(({ id }) => id === run.modelId)
  const trying = <T>(work: () => Promise<T>): Promise<T> => retried(process, signal, work)
  // A run may report without a word on its status: it is pending, and must not be started again.
  const isSilent = random.fork('silent').chance(0.3)
  const reported = async (sequence: number): Promise<void> => {
    const message = `${process.name} ${run.id} ${sequence} ${random.below(1_000)}`
    invocation.attached.add(message)
    const annotation = {
      category: 'Branched',
      level: 'INFO',
      objectAppIds: { root: null },
      message,
      metadata: null,
    } as const
    const status = sequence === 1 && !isSilent ? ({ status: 'running' } as const) : {}
    await trying(() => backend.report({ sequence, ...status, annotations: [annotation] }))
    invocation.acknowledged.add(message)
  }
  await reported(1)
  const leaf = plannedObject(`${run.id}-leaf`, { text: 'leaf' })
  const root = plannedObject(`${run.id}-root`, { text: 'root', children: [leaf.id], claims: [leaf.id] })
  const content: PlannedVersion = { rootId: root.id, objects: [leaf, root] }
  await trying(() => upload(lifeOf(process), content, signal))
  await pause(process, random.below(random.pick([50, 3_000])))
  const version = { projectId: PROJECT_ID, modelId: run.modelId, rootObjectId: root.id, message: 'branched' }
  const created = book.timeline.begin()
  const id = await trying(() => backend.createVersion({ ...version, idempotencyKey: 'the version' }, { signal }))
  book.timeline.end(created)
  if (model !== undefined) book.addVersion(id, model, content, created)
  await reported(2)
  invocation.hasSucceeded = true
  await trying(() => backend.report({ sequence: 3, status: 'succeeded', message: 'branched' }))
}

/** Uploads the objects of a version in one request. */
export async function upload(
  { service }: ServerLife,
  { objects }: PlannedVersion,
  signal?: AbortSignal,
): Promise<void> {
  const body = Buffer.from(`[${objects.map(({ json }) => json).join()}]`)
  await service.project(PROJECT_ID).upload(oneChunk(body), 'application/json', signal === undefined ? {} : { signal })
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

function begin(book: Book, runId: string): Invocation {
  const invocation: Invocation = { runId, attached: new Set(), acknowledged: new Set(), hasSucceeded: false }
  book.invocations.push(invocation)
  return invocation
}

async function retried<T>(process: SimulatedProcess, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      signal.throwIfAborted()
      return await work()
    } catch (error) {
      if (signal.aborted || tries >= TRIES || codeOf(error) !== 'storage_unavailable') throw error
      await pause(process, RETRY_MS * tries)
    }
  }
}

function pause(process: SimulatedProcess, delayMs: number): Promise<void> {
  return new Promise((resolve) => void process.setTimer(delayMs, resolve))
}
