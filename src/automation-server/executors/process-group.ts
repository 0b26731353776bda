import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { Readable, type Writable } from 'node:stream'

export interface ProcessOptions {
  /** The program and its parameters; there is no shell. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>

export interface ProcessExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** Holds what its processes printed back for so long once they have ended: one that left the group can keep a pipe open for ever. */
const OUTPUT_END_MS = 1_000
const KB = 1_024
const UNREACHABLE: ReadonlySet<string | undefined> = new Set(['ESRCH', 'EPERM'])

/**
 * A process with all that it starts, in a group of its own, so that one signal reaches them all. On Windows a signal reaches the first one. Its standard input says
 * nothing, and ends when this process does, whatever ends it: by that a function's process knows.
 */
export class ProcessGroup {
  readonly #child: Child
  #isOver = false
  /** Rejects when the program could not be started. */
  readonly exited: Promise<ProcessExit>

  constructor({ command: [program, ...parameters], env, cwd }: ProcessOptions) {
    const child = spawn(program, parameters, {
      cwd,
      env,
      shell: false,
      detached: process.platform !== 'win32',
      windowsHide: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child = child
    this.exited = new Promise((resolve, reject) => {
      child.on('error', (cause: NodeJS.ErrnoException) =>
        reject(
          new Error(`the program ${JSON.stringify(program)} could not be started: ${cause.code ?? cause.message}`, {
            cause,
          }),
        ),
      )
      child.once('exit', (code, signal) => resolve({ code, signal }))
    })
    // Nothing is written to it, and a process may close it.
    this.#stdin?.on('error', () => undefined)
  }

  /** What a process prints that could not be started for want of handles ends at once: it has no streams then. */
  get stdout(): Readable {
    const { stdout }: Partial<Pick<Child, 'stdout'>> = this.#child
    return stdout ?? Readable.from([])
  }

  get stderr(): Readable {
    const { stderr }: Partial<Pick<Child, 'stderr'>> = this.#child
    return stderr ?? Readable.from([])
  }

  get #stdin(): Writable | undefined {
    return this.#child.stdin
  }

  /** Whoever is gone already is fine, and so is one who may not be told: it has taken other rights, or is gone and not yet buried (macOS). */
  signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#child
    if (pid === undefined || this.#isOver) return
    try {
      if (process.platform === 'win32') this.#child.kill(signal)
      else process.kill(-pid, signal)
    } catch (error) {
      if (!UNREACHABLE.has((error as NodeJS.ErrnoException).code)) throw error
    }
  }

  /** Ends what is left of the group, and its output. From then on nothing is sent: the number may be that of others. */
  async cleanUp(output: Promise<unknown>): Promise<void> {
    this.signal('SIGKILL')
    this.#isOver = true
    const timer = setTimeout(() => {
      this.stdout.destroy()
      this.stderr.destroy()
    }, OUTPUT_END_MS)
    try {
      await output
    } finally {
      clearTimeout(timer)
      this.#stdin?.destroy()
    }
  }

  /** Memory that the process and all below it have in the machine, shared pages counted for each; 0 where the system does not tell. */
  async residentBytes(): Promise<number> {
    const { pid } = this.#child
    if (process.platform !== 'linux' || pid === undefined) return 0
    let bytes = 0
    const pids = new Set([pid])
    for (const one of pids) {
      bytes += await residentBytesOf(one)
      for (const child of await childrenOf(one)) pids.add(child)
    }
    return bytes
  }
}

/** proc_pid_status(5). */
async function residentBytesOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * KB
}

/** proc_tid_children(5): each thread has those that it started. */
async function childrenOf(pid: number): Promise<readonly number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')),
  )
  return lists.flatMap((list) =>
    list
      .split(' ')
      .map(Number)
      .filter((child) => child > 0),
  )
}
