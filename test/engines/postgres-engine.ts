import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, readdirSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { compileShim } from '../crash/power-loss.ts'
import { type Ending, folderInMemory, temporaryFolder } from '../support/folder.ts'
import { freePort } from '../../bench/free-port.ts'
import { DurableCopy } from './durable-copy.ts'

const run = promisify(execFile)
const DEBIAN_FOLDER = '/usr/lib/postgresql'
const USER = 'postgres'
const SHIM_SOURCE = join(import.meta.dirname, 'durable-copy.c')
const START_MS_MAX = 60_000
const START_LOOK_MS = 20
const CONNECT_MS_MAX = 5_000
/** Processes of a server that was killed end a moment after it, and then their shared memory goes. */
const MEMORY_IN_USE = /pre-existing shared memory block .* is still in use/

export interface EngineOptions {
  /** Of the configuration of PostgreSQL. */
  readonly settings?: Readonly<Record<string, string>>
  /** It runs under a library that notes what is synced. Needs gcc. */
  readonly canLosePower?: boolean
}

export interface SmallDisk {
  grow(sizeBytes: number): Promise<void>
}

/** PostgreSQL refuses to run as root. */
async function accountOf(name: string): Promise<Pick<SpawnOptions, 'uid' | 'gid'>> {
  if (process.getuid?.() !== 0) return {}
  const id = async (flag: string): Promise<number> => Number((await run('id', [flag, name])).stdout)
  return { uid: await id('-u'), gid: await id('-g') }
}

/** The newest version that Debian installed, or the one in `STOWAGE_TEST_POSTGRES`, a folder of programs. */
function programsFolder(): string {
  const chosen = process.env.STOWAGE_TEST_POSTGRES
  if (chosen !== undefined) return chosen
  const versions = existsSync(DEBIAN_FOLDER) ? readdirSync(DEBIAN_FOLDER) : []
  const newest = versions.toSorted((a, b) => Number(a) - Number(b)).at(-1)
  assert.ok(
    newest,
    `PostgreSQL is not installed: apt-get install postgresql, or name its programs in STOWAGE_TEST_POSTGRES`,
  )
  return join(DEBIAN_FOLDER, newest, 'bin')
}

/** A PostgreSQL server of a test, in a temporary folder, on a port of the loopback interface. */
export class PostgresEngine {
  readonly port: number
  readonly #folder: string
  readonly #programs: string
  readonly #account: Pick<SpawnOptions, 'uid' | 'gid'>
  readonly #settings: readonly string[]
  readonly #durable: DurableCopy | undefined
  #server: ChildProcess | undefined
  #said = ''

  private constructor(
    place: { readonly folder: string; readonly programs: string; readonly port: number },
    account: Pick<SpawnOptions, 'uid' | 'gid'>,
    settings: readonly string[],
    shim: string | undefined,
  ) {
    this.port = place.port
    this.#folder = place.folder
    this.#programs = place.programs
    this.#account = account
    this.#settings = settings
    this.#durable = shim === undefined ? undefined : new DurableCopy(join(place.folder, 'data'), place.folder, shim)
  }

  /** Makes a cluster of databases and starts it. It is killed when the test ends. */
  static async start(
    ending: Ending,
    { settings = {}, canLosePower = false }: EngineOptions = {},
  ): Promise<PostgresEngine> {
    const folder = canLosePower ? folderInMemory(ending) : temporaryFolder(ending)
    const [programs, account] = [programsFolder(), await accountOf(USER)]
    if (account.uid !== undefined && account.gid !== undefined) chownSync(folder, account.uid, account.gid)
    const shim = canLosePower ? await compileShim(folder, SHIM_SOURCE) : undefined
    const made = ['-D', join(folder, 'data'), '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
    // Each sync copies the segment of the log that it is for.
    const small = canLosePower ? ['--wal-segsize=1'] : []
    await run(join(programs, 'initdb'), [...made, ...small], { ...account, cwd: folder })
    const listed = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const engine = new PostgresEngine({ folder, programs, port: await freePort() }, account, listed, shim)
    ending.after(() => engine.#kill())
    await engine.restart()
    return engine
  }

  /** For a user who may do everything, without a password. */
  url(database: string = 'postgres', port: number = this.port): string {
    return `postgres://${USER}@127.0.0.1:${port}/${database}`
  }

  /** Starts the server, and does not wait until it answers. */
  launch(): void {
    assert.equal(this.#server, undefined, 'the server is not running')
    const options = ['-D', join(this.#folder, 'data'), '-p', String(this.port)]
    const local = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=']
    // A group of its own, so that a signal to it reaches nothing else. Processes for connections leave the group.
    const server = spawn(join(this.#programs, 'postgres'), [...options, ...local, ...this.#settings], {
      ...this.#account,
      cwd: this.#folder,
      env: { ...process.env, ...this.#durable?.arm() },
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    assert.ok(server.stderr)
    this.#said = ''
    server.stderr.setEncoding('utf8').on('data', (text: string) => (this.#said = (this.#said + text).slice(-4_000)))
    this.#server = server
  }

  /** Starts the server, and waits until it takes connections. */
  async restart(): Promise<void> {
    this.launch()
    const endMs = performance.now() + START_MS_MAX
    while (!(await this.#takesConnections())) {
      assert.ok(performance.now() < endMs, `the server does not answer: ${this.#said}`)
      const hasEnded = this.#server?.exitCode !== null
      await delay(START_LOOK_MS)
      if (!hasEnded) continue
      assert.match(this.#said, MEMORY_IN_USE, 'the server ended')
      this.#server = undefined
      this.launch()
    }
  }

  /** Without `pg_isready`, which not every package of PostgreSQL has. */
  async #takesConnections(): Promise<boolean> {
    const client = new Client({ connectionString: this.url(), connectionTimeoutMillis: CONNECT_MS_MAX })
    client.on('error', () => undefined)
    try {
      await client.connect()
      return true
    } catch {
      return false
    } finally {
      // Not waited for: after a connection that broke while it was being made, `end` may never resolve.
      client.end().catch(() => undefined)
    }
  }

  /** From now on new tables lie on a disk of so many bytes. Undefined without the right to mount one. */
  async putTablesOnSmallDisk(ending: Ending, sizeBytes: number): Promise<SmallDisk | undefined> {
    const disk = join(this.#folder, 'small-disk')
    await mkdir(disk)
    try {
      await run('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes}`, 'tmpfs', disk])
    } catch {
      return undefined
    }
    ending.after(async () => void (await run('umount', ['-l', disk])))
    const { uid, gid } = this.#account
    if (uid !== undefined && gid !== undefined) chownSync(disk, uid, gid)
    const client = new Client(this.url())
    await client.connect()
    await client.query(`CREATE TABLESPACE small LOCATION '${disk}'`)
    await client.query('ALTER DATABASE postgres SET default_tablespace = small')
    await client.end()
    return { grow: async (grownBytes) => void (await run('mount', ['-o', `remount,size=${grownBytes}`, disk])) }
  }

  /** Whether the server is a standby when it starts the next time: it follows no primary, and takes no writes. */
  async becomeStandby(isStandby: boolean): Promise<void> {
    const signal = join(this.#folder, 'data', 'standby.signal')
    if (isStandby) await writeFile(signal, '')
    else await rm(signal)
  }

  /** Ends the server as the operator does: connections are cut, and everything is written. */
  async stop(): Promise<void> {
    await this.#end((server) => server.kill('SIGINT'))
  }

  /** `kill -9`. The processes of its connections end as soon as they see that it is gone. */
  async kill(): Promise<void> {
    await this.#end(() => this.#kill())
  }

  /** `kill -9`, after which the disk holds only what was synced since the start; an engine that can lose power only. */
  async losePower(): Promise<void> {
    assert.ok(this.#durable, 'the engine can lose its power')
    await this.kill()
    this.#durable.strike()
  }

  async #end(end: (server: ChildProcess) => void): Promise<void> {
    const server = this.#server
    assert.ok(server, 'the server is running')
    const exited = once(server, 'exit')
    end(server)
    await exited
    this.#server = undefined
  }

  #kill(): void {
    const pid = this.#server?.pid
    if (pid === undefined || this.#server?.exitCode !== null) return
    try {
      process.kill(-pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}
