import { openAccess } from '../access/open.ts'
import { emit } from '../emit/emit.ts'
import type { ClosureSelector, ProjectQuota } from '../object/graph-store.ts'
import type { GraphRoot } from '../object/roots.ts'
import type { ServiceContext, ServiceExtension } from '../service/extension.ts'
import type { ObjectService } from '../service/object-service.ts'
import { createObjectService } from '../service/service.ts'
import type { ConnectionParts } from './calls.ts'
import type { StorageBackend } from '../storage/backend.ts'
import { SimulatedProcess } from './process.ts'
import type { Random } from './random.ts'

/** A service that has not closed so long after its grace is killed. */
const LAST_STEPS_MS = 60_000
/** How long a server that went down stays down. */
const DOWN_MS_MAX = 500

/** A process's connection to the storage. */
export interface Connection extends Required<Pick<StorageBackend, 'records' | 'blobs' | 'close'>> {
  /** Call it when the process has died. */
  sever(): void
}

/** What a project may hold at the moment. */
export type QuotaOf = (projectId: string) => ProjectQuota | undefined

export type ServerParts = Pick<ConnectionParts, 'scheduler' | 'faults'> & {
  readonly random: Random
  readonly name: string
  /** Called for each process. `over` resolves when it has ended. */
  readonly connect: (parts: ConnectionParts, over: Promise<void>) => Connection
  /** The versions of a project, which its host keeps. */
  readonly rootsOf: (projectId: string) => readonly GraphRoot[]
  /** What each project may hold; no bounds by default. */
  readonly quotaOf?: QuotaOf | undefined
  /** Called when a fault kills every process. */
  readonly onPowerLoss: () => void
  /** Further extensions of the service of a process; none by default. */
  readonly extensionsOf?: (process: SimulatedProcess) => readonly ServiceExtension[]
  /** Receives the background reports of a service. */
  readonly onError: (error: unknown) => void
}

/** One life of a server: from its start until it is stopped or killed. */
export interface ServerLife {
  readonly service: ObjectService
  /** What an extension of the service gets. */
  readonly context: ServiceContext<unknown>
  readonly graphs: ServiceContext<unknown>['graphs']
  readonly environment: SimulatedProcess
  /** Resolves when the process dies or its service is closed. */
  readonly over: Promise<void>
  /** Kills the process, at once. */
  readonly kill: () => void
}

/** A machine on which a service is started again and again. */
export class SimulatedServer {
  readonly name: string
  readonly #parts: ServerParts
  #starts = 0
  #life: (ServerLife & { readonly end: () => void }) | undefined
  readonly #living = new Set<ServerLife>()
  #upAgain: Promise<void> = Promise.resolve()
  #stopping: Promise<unknown> = Promise.resolve()

  constructor(parts: ServerParts) {
    this.#parts = parts
    this.name = parts.name
  }

  /** The current life, or a new one if there is none. */
  life(): ServerLife {
    if (this.#life === undefined) {
      this.#life = this.#start()
      this.#living.add(this.#life)
    }
    return this.#life
  }

  /** Whether a process is alive that never slept. */
  get isAwake(): boolean {
    return this.#life?.environment.isAlive === true && !this.#life.environment.hasSlept
  }

  /** Resolves when the machine is up again after the last crash. */
  up(): Promise<void> {
    return this.#upAgain
  }

  /** Kills every process of the machine, at once; also one that is being stopped. */
  crash(): void {
    this.#life = undefined
    for (const life of this.#living) life.kill()
    this.#living.clear()
    const downMs = this.#parts.random.below(DOWN_MS_MAX)
    this.#upAgain = new Promise((resolve) => this.#parts.scheduler.schedule(downMs, 'up again', resolve))
  }

  /** Closes the service, as an operator does. Waits for one that is being closed already. */
  async stop(graceMs: number): Promise<void> {
    const before = this.#stopping
    const life = this.#life
    this.#life = undefined
    this.#stopping = Promise.all([before, life && this.#close(life, graceMs)])
    await this.#stopping
  }

  async #close(life: ServerLife & { readonly end: () => void }, graceMs: number): Promise<void> {
    const killer = this.#parts.scheduler.schedule(graceMs + LAST_STEPS_MS, 'kill', life.kill)
    await Promise.race([life.service.close({ graceMs }), life.over])
    killer.cancel()
    this.#living.delete(life)
    life.end()
  }

  #start(): ServerLife & { readonly end: () => void } {
    const { scheduler, faults, random, connect, onPowerLoss, onError, rootsOf, quotaOf, extensionsOf } = this.#parts
    const process = new SimulatedProcess(
      `${this.name}.${++this.#starts}`,
      scheduler,
      random.fork(`start ${this.#starts}`),
    )
    let end = (): void => undefined
    const over = new Promise<void>((resolve) => (end = resolve))
    const onCrash = (kind: 'crash' | 'powerLoss'): void => {
      if (kind === 'powerLoss') onPowerLoss()
      else if (this.#life?.environment === process) this.crash()
      else kill()
    }
    const backend = connect({ scheduler, process, random, faults, onCrash }, over)
    const kill = (): void => {
      if (!process.isAlive) return
      process.kill()
      backend.sever()
      end()
    }
    let attached: ServiceContext<unknown> | undefined
    const service = createObjectService({
      backend,
      access: openAccess(),
      environment: process,
      ...(quotaOf === undefined ? {} : { quota: quotaOf }),
      logger: { error: (fields) => onError((fields as { readonly err: unknown }).err) },
      extensions: [
        {
          attach: (context) => {
            attached = context
            return []
          },
          roots: (projectId) => oneBatch(rootsOf(projectId)),
        },
        ...(extensionsOf?.(process) ?? []),
      ],
    })
    const context = attached as unknown as ServiceContext<unknown>
    return { service, context, graphs: context.graphs, environment: process, over, kill, end }
  }
}

async function* oneBatch<T>(items: readonly T[]): AsyncGenerator<readonly T[]> {
  yield items
}

/** All bytes of a closure as gzip, as the graph endpoint sends them. */
export async function* closureBytes(
  { graphs, environment }: ServerLife,
  projectId: string,
  rootId: string,
  options: Parameters<ClosureSelector['closure']>[2] & {
    readonly coding: 'gzip' | 'identity'
    readonly onSelected: (closureDigest: string | undefined, missing: number) => void
  },
): AsyncGenerator<Uint8Array> {
  const { signal, coding, onSelected } = options
  const selection = await graphs.closure(projectId, rootId, options)
  if (selection === undefined) throw Object.assign(new Error('no such object'), { code: 'not_found' })
  try {
    onSelected(selection.closureDigest, selection.missing)
    yield* emit(selection, { format: 'text', coding }, { signal, environment })
  } finally {
    selection.release()
  }
}
