import { type ChildProcess, spawn } from 'node:child_process'
import type { Server } from 'node:net'
import { constants } from 'node:os'
import { Readable, type Writable } from 'node:stream'
import { type SocketBridge, OpenBridge } from './socket-bridge.ts'
import { killMarked, killProcess, MARK_VARIABLE } from './kill.ts'
import { childrenOf, pidsWithEnvironment, residentBytesOf, withDescendants } from './proc.ts'
import type { ProcessLedger } from './process-ledger.ts'

export interface ProcessOptions {
  /** The program and its parameters; there is no shell. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** Of this process and all that it starts, also in its environment. */
  readonly mark: string
  /** Records the process before it continues. Without a ledger the command does not wait for that. */
  readonly ledger?: Pick<ProcessLedger, 'add' | 'remove'>
  /** Whether the command is bubblewrap, and the function its grandchild. */
  readonly isSandboxed?: boolean
  /** The command listens, and hands the listener out. */
  readonly bridge?: SocketBridge
}

export interface ProcessExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/**
 * How long the remaining output is awaited after its processes have ended: a process that left the group can keep a
 * pipe open forever.
 */
const OUTPUT_END_MS = 1_000
/** One of this many memory measurements also searches for processes that left the tree. */
const LOOKS_PER_SEARCH = 4
/** A program's exit code if a signal ended the process inside it. */
const SIGNALED = 128
/** Of the one pipe beside the three of every process. */
const GATE = 3

/**
 * A process with all that it starts, in a group of its own, so that one signal reaches them all. On Windows a signal
 * reaches only the first one. Its standard input is silent and ends when this process does, for whatever reason: a
 * function's process notices the end of its server by that.
 */
export class ProcessGroup {
  readonly #child: ChildProcess
  readonly #options: ProcessOptions
  readonly #known = new Set<number>()
  readonly #escaped = new Set<number>()
  #bridge: OpenBridge | undefined
  #looks = 0
  #isOver = false
  /** Rejects when the program could not be started. */
  readonly exited: Promise<ProcessExit>

  private constructor(options: ProcessOptions) {
    const { command, cwd, env, bridge } = options
    const [program, ...parameters] = command
    const child = spawn(program, parameters, {
      cwd,
      env,
      shell: false,
      detached: process.platform !== 'win32',
      windowsHide: true,
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', ...(bridge === undefined ? [] : ['ipc' as const])],
    })
    this.#child = child
    this.#options = options
    this.exited = new Promise((resolve, reject) => {
      child.on('error', (cause: NodeJS.ErrnoException) =>
        reject(
          new Error(`the program ${JSON.stringify(program)} could not be started: ${cause.code ?? cause.message}`, {
            cause,
          }),
        ),
      )
      child.once('exit', (code, signal) => resolve(this.#exitOf(code, signal)))
    })
    // Somebody waits for it later.
    this.exited.catch(() => undefined)
    // Nothing is written to the first, and a process may close both.
    for (const stream of [child.stdin, this.#gate]) stream?.on('error', () => undefined)
    if (bridge !== undefined) this.#openBridge(bridge)
  }

  /**
   * Resolves once the process has been recorded and released. Rejects if it cannot be recorded; then nothing of it is
   * left.
   */
  static async start(options: ProcessOptions): Promise<ProcessGroup> {
    const group = new ProcessGroup(options)
    const { pid } = group.#child
    try {
      if (pid !== undefined) await options.ledger?.add(pid, options.mark)
    } catch (error) {
      group.signal('SIGKILL')
      throw error
    }
    group.#gate?.write('go\n')
    return group
  }

  /** A process that could not be started for lack of handles has no streams, so its output ends at once. */
  get stdout(): Readable {
    return this.#child.stdout ?? Readable.from([])
  }

  get stderr(): Readable {
    return this.#child.stderr ?? Readable.from([])
  }

  get #gate(): Writable | undefined {
    return (this.#child.stdio as readonly unknown[] | undefined)?.[GATE] as Writable | undefined
  }

  /** A process that is already gone needs no signal. */
  signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#child
    if (pid === undefined || this.#isOver) return
    if (process.platform === 'win32') this.#child.kill(signal)
    else if (signal === 'SIGTERM' && this.#options.isSandboxed === true) void this.#askInside(pid)
    else killProcess(-pid, signal)
  }

  /**
   * Ends all remaining processes of it, wherever they went, and its output. Afterwards nothing is sent: the pid may
   * belong to another process.
   */
  async cleanUp(output: Promise<unknown>): Promise<void> {
    this.signal('SIGKILL')
    this.#isOver = true
    if (process.platform === 'linux' && this.#options.isSandboxed !== true) await killMarked(this.#options.mark)
    const timer = setTimeout(() => {
      this.stdout.destroy()
      this.stderr.destroy()
    }, OUTPUT_END_MS)
    try {
      await output
    } finally {
      clearTimeout(timer)
      this.#bridge?.close()
      if (this.#child.connected) this.#child.disconnect()
      this.#child.stdin?.destroy()
      this.#gate?.destroy()
      await this.#options.ledger?.remove(this.#options.mark)
    }
  }

  /**
   * The resident memory of the process and its descendants, with shared pages counted for each; 0 if the system does
   * not tell.
   */
  async residentBytes(): Promise<number> {
    const { pid } = this.#child
    if (process.platform !== 'linux' || pid === undefined) return 0
    if (this.#options.isSandboxed !== true && this.#looks++ % LOOKS_PER_SEARCH === 0) await this.#findEscaped()
    let bytes = 0
    for (const one of await withDescendants([pid, ...this.#escaped])) bytes += await residentBytesOf(one)
    return bytes
  }

  /** Those that have left the tree of processes; each is looked at once. */
  async #findEscaped(): Promise<void> {
    const { mark } = this.#options
    for (const pid of await pidsWithEnvironment(`${MARK_VARIABLE}=${mark}`, this.#known)) this.#escaped.add(pid)
    for (const pid of this.#escaped) if (!this.#known.has(pid)) this.#escaped.delete(pid)
  }

  /** The first two are bubblewrap's, which would end all the others at once. */
  async #askInside(pid: number): Promise<void> {
    const [first] = await childrenOf(pid)
    if (first === undefined) return
    const inside = await withDescendants(await childrenOf(first))
    if (!this.#isOver) for (const one of inside) killProcess(one, 'SIGTERM')
  }

  #exitOf(code: number | null, signal: NodeJS.Signals | null): ProcessExit {
    if (this.#options.isSandboxed !== true || code === null || code <= SIGNALED) return { code, signal }
    const [name] = Object.entries(constants.signals).find(([, number]) => number === code - SIGNALED) ?? []
    return name === undefined ? { code, signal } : { code: null, signal: name as NodeJS.Signals }
  }

  /** Exactly one message arrives, before any code of the function runs. */
  #openBridge(bridge: SocketBridge): void {
    this.#child.once('message', (_message, listener) => {
      this.#child.disconnect()
      if (this.#isOver) (listener as Server).close()
      else this.#bridge = new OpenBridge(listener as Server, bridge)
    })
  }
}
