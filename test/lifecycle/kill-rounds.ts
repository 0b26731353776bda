import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { CommandAnswer, CommandMessage, ServerCommands } from './server-commands.ts'
import type { Work } from './work.ts'

const SERVER = fileURLToPath(new URL('./start-archive-server.ts', import.meta.url))
const WORKER = fileURLToPath(new URL('./archive-worker.ts', import.meta.url))

/** Below those that Linux, macOS and Windows give to outgoing connections. */
const PORTS = { first: 15_000, count: 15_000 }
const START_ATTEMPTS_MAX = 10

/** A server process that is started again, on the same folder and port, whenever it is killed. */
export class KillableServer {
  readonly #folder: string
  readonly #pageBytes: number
  #child: ChildProcess | undefined
  #port = 0
  #commands = 0
  #restarting: Promise<void> = Promise.resolve()

  constructor(folder: string, pageBytes: number) {
    this.#folder = folder
    this.#pageBytes = pageBytes
  }

  /** In a folder that goes when the test ends, as the process does. */
  static async inNewFolder(t: TestContext, pageBytes: number): Promise<{ server: KillableServer; folder: string }> {
    const folder = await mkdtemp(join(tmpdir(), 'stowage-lifecycle-'))
    const server = new KillableServer(folder, pageBytes)
    t.after(async () => {
      await server.kill()
      await rm(folder, { recursive: true, force: true })
    })
    await server.start()
    return { server, folder }
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Its port is none that the system gives to connections: it must be free again after each kill. */
  async start(): Promise<void> {
    const isFirst = this.#port === 0
    for (let attempt = 1; ; attempt++) {
      if (isFirst) this.#port = PORTS.first + Math.floor(Math.random() * PORTS.count)
      try {
        return await this.#listen()
      } catch (error) {
        if (!isFirst || attempt === START_ATTEMPTS_MAX) throw error
      }
    }
  }

  /** Kills it and starts it again; several at a time take turns. */
  restart(): Promise<void> {
    this.#restarting = this.#restarting.then(async () => {
      await this.kill()
      await this.start()
    })
    return this.#restarting
  }

  /** Tells the server something. Rejects with `ServerKilledError` if it dies before it answers. */
  call<K extends keyof ServerCommands>(
    name: K,
    ...args: Parameters<ServerCommands[K]>
  ): Promise<Awaited<ReturnType<ServerCommands[K]>>> {
    const child = this.#child
    const number = ++this.#commands
    return new Promise((resolve, reject) => {
      const end = (): void => void child?.off('message', onAnswer).off('exit', onExit)
      const onExit = (): void => reject(new ServerKilledError(name))
      const onAnswer = (answer: CommandAnswer): void => {
        if (answer.number !== number) return
        end()
        if ('error' in answer) reject(new Error(`${name}: ${answer.error}`))
        else resolve(answer.result as Awaited<ReturnType<ServerCommands[K]>>)
      }
      child?.on('message', onAnswer).once('exit', onExit)
      if (child?.connected !== true) return reject(new ServerKilledError(name))
      child.send({ number, name, args } satisfies CommandMessage, (error) => {
        if (error !== null) reject(new ServerKilledError(name))
      })
    })
  }

  /** Resolves when the process has ended, as it was told to (`dieAfter`). */
  async died(): Promise<void> {
    const child = this.#child
    if (child !== undefined && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  async #listen(): Promise<void> {
    const child = forked(SERVER, [this.#folder, ...[this.#port, this.#pageBytes].map(String)])
    this.#child = child
    const errors = errorsOf(child)
    await Promise.race([once(child, 'message'), once(child, 'exit').then(() => Promise.reject(new Error(errors())))])
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}

/** The server died before it answered. */
export class ServerKilledError extends Error {}

/**
 * Numbers from 0 up to, not including, `below`: the same ones for the same seed (the generator of Numerical Recipes).
 */
export function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

export interface KillRounds {
  /** How often something is killed. */
  readonly rounds: number
  readonly random: (below: number) => number
  /** Which may be killed beside the worker. */
  readonly servers: readonly KillableServer[]
  /** The work of this number: its target is its own. */
  readonly work: (number: number) => Work
  /** Throws when what the worker made is not right. */
  readonly verify: (work: Work) => Promise<void>
}

/** About as many steps as one piece of work has, so that kills come at every one of them. */
const STEPS = 9

/**
 * Kills the worker or a server at random steps, until there were so many kills and the last piece of work ended, and
 * verifies each piece that ended.
 */
export async function killRounds({ rounds, random, servers, work, verify }: KillRounds): Promise<void> {
  let kills = 0
  for (let number = 0; kills < rounds;) {
    const piece = work(number)
    let isDone = false
    while (!isDone) {
      const worker = forked(WORKER, [JSON.stringify(piece)])
      const errors = errorsOf(worker)
      let stepsLeft = kills < rounds ? random(STEPS) : Infinity
      const restarts: Promise<void>[] = []
      worker.on('message', () => {
        if (stepsLeft-- > 0 || kills >= rounds) return
        kills++
        stepsLeft = random(STEPS)
        const victim = random(servers.length + 1)
        if (victim === servers.length) worker.kill('SIGKILL')
        else restarts.push(servers[victim].restart())
      })
      const [code, signal] = (await once(worker, 'exit')) as [number | null, NodeJS.Signals | null]
      await Promise.all(restarts)
      if (code !== 0 && signal !== 'SIGKILL') throw new Error(`${piece.kind} ended with ${code}: ${errors()}`)
      isDone = code === 0
    }
    await verify(piece)
    number++
  }
}

function forked(file: string, args: readonly string[]): ChildProcess {
  return fork(file, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
}

function errorsOf(child: ChildProcess): () => string {
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
  return () => errors
}
