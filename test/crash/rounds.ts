import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../bench/model/random.ts'
import { issueToken } from '../../src/access/token-store.ts'
import { eventually } from '../support/patience.ts'
import { Client } from './client.ts'
import { Oracle } from './oracle.ts'
import { PowerLoss } from './power-loss.ts'
import { type CrashServer, runCommand, startServer, type Storage } from './server.ts'
import { makeUpload, type Upload } from './uploads.ts'

export interface RoundsOptions {
  readonly rounds: number
  readonly storage: Storage
  readonly random: Random
  readonly scratch: string
  /** The library that notes what is synced: the power is lost with each crash. */
  readonly shim?: string
  /** Nothing is synced: the control, which must lose. */
  readonly unsynced?: boolean
}

export interface RoundsReport {
  readonly rounds: number
  readonly acknowledgedUploads: number
  readonly acknowledgedObjects: number
  /** What is wrong, and after which round; empty if nothing is. */
  readonly findings: readonly string[]
}

const ROUNDS_PER_FOLDER = 50
/** The command `check` reads the folder before so many of the restarts, and after the last one. */
const CHECKED_ONCE_IN = 5
/** A crash in the middle of the start, as long as the processes of this machine take for it. */
const CRASH_IN_START_ONCE_IN = 8
const START_MS = 500
const LOAD_MS = 700
/** Made while the server starts, so that it has more to do than the clients. */
const FIRST_UPLOADS = 12

/** Uploads, kills, restarts and compares, over and over; stops after the first round that lost something. */
export async function crashRounds(options: RoundsOptions): Promise<RoundsReport> {
  const report = { rounds: 0, acknowledgedUploads: 0, acknowledgedObjects: 0, findings: [] as string[] }
  while (report.rounds < options.rounds && report.findings.length === 0) {
    const folder = await CrashedFolder.create(options)
    try {
      const rounds = Math.min(ROUNDS_PER_FOLDER, options.rounds - report.rounds)
      for (let round = 0; round < rounds && report.findings.length === 0; round++) {
        report.rounds += 1
        report.findings.push(...(await folder.round(round)).map((finding) => `round ${report.rounds}: ${finding}`))
      }
      if (report.findings.length === 0)
        report.findings.push(...(await folder.last()).map((finding) => `after ${report.rounds} rounds: ${finding}`))
      report.acknowledgedUploads += folder.oracle.acknowledgedUploads
      report.acknowledgedObjects += folder.oracle.acknowledgedObjects
    } finally {
      folder.remove()
    }
  }
  return report
}

class CrashedFolder {
  readonly oracle = new Oracle()
  readonly #options: RoundsOptions
  readonly #folder: string
  readonly #data: string
  readonly #token: string
  readonly #power: PowerLoss | undefined
  readonly #waiting: Upload[] = []
  #uploads = 0

  private constructor(options: RoundsOptions, folder: string, data: string, token: string) {
    this.#options = options
    this.#folder = folder
    this.#data = data
    this.#token = token
    this.#power = options.shim === undefined ? undefined : new PowerLoss(data, folder, options.shim)
  }

  static async create(options: RoundsOptions): Promise<CrashedFolder> {
    const folder = mkdtempSync(join(options.scratch, `${options.storage}-`))
    const data = join(folder, 'data')
    mkdirSync(data)
    const { token } = await issueToken(folderCredentials(data), {
      projects: new Map([['*', 'write']]),
      subject: 'crash test',
      ttlSeconds: 86_400,
    })
    return new CrashedFolder(options, folder, data, token)
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** One life of the server, from its start to its violent end. */
  async round(round: number): Promise<readonly string[]> {
    const { random, unsynced = false } = this.#options
    if (round > 0 && random.oneIn(CRASH_IN_START_ONCE_IN)) await this.#crashInStart()
    if (round > 0 && random.oneIn(CHECKED_ONCE_IN)) {
      const found = await this.#check()
      if (found.length > 0) return found
    }
    const first = this.#makeUploads(FIRST_UPLOADS)
    return this.#serve({ everything: false }, async (server, client) => {
      this.#waiting.push(...(await first))
      const loading = { isOn: true }
      const workers = Array.from({ length: 4 + random.below(3) }, () => this.#load(client, loading))
      const acknowledgedBefore = this.oracle.acknowledgedUploads
      await sleep(random.below(LOAD_MS))
      // The control must have something to lose, however slow the machine is.
      if (unsynced)
        await eventually(() => this.oracle.acknowledgedUploads > acknowledgedBefore, 'an upload is acknowledged')
      await server.end('SIGKILL')
      loading.isOn = false
      await Promise.all(workers)
      this.#power?.strike(random)
    })
  }

  /** Compares everything, ends in peace, and reads the folder from outside. */
  async last(): Promise<readonly string[]> {
    const findings = await this.#serve({ everything: true }, (server) => server.end('SIGTERM'))
    return [...findings, ...(await this.#check())]
  }

  /** Starts a server and compares what it holds; `use` must end it. */
  async #serve(
    { everything }: { readonly everything: boolean },
    use: (server: CrashServer, client: Client) => Promise<void>,
  ): Promise<readonly string[]> {
    const server = this.#start()
    let client: Client | undefined
    try {
      client = new Client(await server.url, this.#token)
      const findings = await this.oracle.verify(client, { random: this.#options.random, everything })
      await use(server, client)
      return findings
    } catch (error) {
      return [String(error)]
    } finally {
      client?.close()
      await server.end('SIGKILL')
    }
  }

  #start(): CrashServer {
    const { storage, unsynced } = this.#options
    return startServer({ data: this.#data, storage, unsynced, env: this.#power?.arm() })
  }

  async #crashInStart(): Promise<void> {
    const server = this.#start()
    server.url.catch(() => undefined)
    await sleep(this.#options.random.below(START_MS))
    await server.end('SIGKILL')
    this.#power?.strike(this.#options.random)
  }

  async #load(client: Client, loading: { readonly isOn: boolean }): Promise<void> {
    while (loading.isOn) {
      const upload = this.#waiting.pop() ?? (await this.#makeUpload())
      if (!loading.isOn) return
      this.oracle.note(upload, await client.upload(upload, this.#options.random))
    }
  }

  #makeUpload(): Promise<Upload> {
    return makeUpload(this.#options.random, `upload-${this.#uploads++}`)
  }

  async #makeUploads(count: number): Promise<Upload[]> {
    const uploads: Upload[] = []
    while (uploads.length < count) uploads.push(await this.#makeUpload())
    return uploads
  }

  async #check(): Promise<readonly string[]> {
    const { code, output } = await runCommand(['check', '--data', this.#data])
    return code === 0 ? [] : [`check ended with ${code}: ${output.slice(0, 1_000)}`]
  }
}
