import { readFileSync } from 'node:fs'
import type { ObjectService } from '../../src/index.ts'

/** Between two looks at the memory of the process. */
const LOOK_MS = 100

/** What a test may tell its server over the channel of the process, and the result. */
export interface ServerCommands {
  /** The process dies by SIGKILL, so many changes of its storage later. */
  dieAfter(changes: number): void
  /** Begins so many epochs. */
  advanceEpochs(count: number): Promise<number>
  /** One epoch of grace each. */
  collect(projectId: string, options?: { readonly dryRun?: boolean }): ReturnType<ProjectUpkeep['collect']>
  compact(
    projectId: string,
    options?: { readonly all?: boolean; readonly processorShare?: number },
  ): ReturnType<ProjectUpkeep['compact']>
  /**
   * Collects or compacts until that is done or `stopUpkeep` is called. Resolves to the objects that were freed or the
   * merges that were made. A collection that was stopped does not tell.
   */
  workUntilStopped(projectId: string, kind: 'collect' | 'compact', processorShare: number): Promise<number>
  stopUpkeep(): void
  unreferenced(projectId: string): ReturnType<ProjectUpkeep['unreferenced']>
  /** The most that the process held in memory since it was asked first. */
  memory(): HeldMemory
}

export interface HeldMemory {
  readonly residentBytesMax: number
  /** Without the files that are mapped, such as tables of the database: the system drops those when it needs the memory for others. */
  readonly ownBytesMax: number
}

type ProjectUpkeep = Pick<ReturnType<ObjectService['project']>, 'collect' | 'compact' | 'unreferenced'>

export interface CommandMessage {
  readonly number: number
  readonly name: keyof ServerCommands
  readonly args: readonly unknown[]
}

export type CommandAnswer = { readonly number: number } & ({ readonly result: unknown } | { readonly error: string })

export function answerCommands(
  service: ObjectService,
  hands: Pick<ServerCommands, 'dieAfter' | 'advanceEpochs'>,
): void {
  let memory: MemoryWatch | undefined
  let stopping = new AbortController()
  const commands: ServerCommands = {
    ...hands,
    // Shorter times are rounded up to one epoch.
    collect: (projectId, options) => service.project(projectId).collect({ olderThanMs: 1, undoMs: 1, ...options }),
    compact: (projectId, options) => service.project(projectId).compact(options),
    workUntilStopped: async (projectId, kind, processorShare) => {
      stopping = new AbortController()
      const { signal } = stopping
      const project = service.project(projectId)
      let merges = 0
      try {
        if (kind === 'collect') return (await project.collect({ olderThanMs: 1, undoMs: 1, signal })).freed.objects
        await project.compact({ processorShare, signal, onProgress: (progress) => void ({ merges } = progress) })
      } catch (error) {
        if (!signal.aborted) throw error
      }
      return merges
    },
    stopUpkeep: () => stopping.abort(),
    unreferenced: (projectId) => service.project(projectId).unreferenced(),
    memory: () => (memory ??= new MemoryWatch()).most,
  }
  process.on('message', (message: CommandMessage) => {
    const { number, name, args } = message
    const run = commands[name] as (...given: readonly unknown[]) => unknown
    void Promise.resolve()
      .then(() => run(...args))
      .then(
        (result) => process.send?.({ number, result } satisfies CommandAnswer),
        (error: unknown) => process.send?.({ number, error: String(error) } satisfies CommandAnswer),
      )
  })
}

class MemoryWatch {
  #ownBytesMax = 0

  constructor() {
    this.#look()
    setInterval(() => this.#look(), LOOK_MS).unref()
  }

  get most(): HeldMemory {
    return { residentBytesMax: process.resourceUsage().maxRSS * 1_024, ownBytesMax: this.#ownBytesMax }
  }

  #look(): void {
    this.#ownBytesMax = Math.max(this.#ownBytesMax, ownBytes())
  }
}

/** Where the system does not tell them apart, all resident bytes count. */
function ownBytes(): number {
  if (process.platform !== 'linux') return process.memoryUsage.rss()
  const [, kibibytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  return Number(kibibytes) * 1_024
}
