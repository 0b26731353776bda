import { once } from 'node:events'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import { s3Blobs } from '../../adapters/s3/index.ts'
import type { Random } from '../../bench/model/random.ts'
import { combinedBackend } from '../../src/storage/index.ts'
import { keyBounds } from '../../src/store/records/keys.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import type { Finding } from '../../src/store/upkeep/finding.ts'
import { Client } from '../crash/client.ts'
import { Oracle } from '../crash/oracle.ts'
import { makeUpload } from '../crash/uploads.ts'
import type { Ending } from '../support/folder.ts'
import { eventually } from '../support/patience.ts'
import type { CaseServerOptions } from './case-server.ts'
import { type CaseServerProcess, startCaseServer } from './case-server-process.ts'
import { type EngineOptions, PostgresEngine } from './postgres-engine.ts'
import { type S3Engine, startS3Engine } from './s3-engine.ts'

const SERVERS = 3
const UPLOADERS = 6
/** The clocks of two servers are at least so far apart. */
const CLOCK_DIFFERENCE_MS = 300_000
/** With it, what a dead server left is applied within 5 s rather than within 90 s. */
const UPKEEP_SPEED = 18

interface CaseServer extends CaseServerProcess {
  readonly client: Client
}

export interface CaseClusterOptions {
  readonly random: Random
  /** The control: servers acknowledge each commit before they make it. */
  readonly isLazy?: boolean
  readonly postgres?: EngineOptions
}

/** Three servers over PostgreSQL and an S3 store, six uploaders, and an oracle outside that believes in a 200 only. */
export class CaseCluster {
  readonly postgres: PostgresEngine
  readonly s3: S3Engine
  readonly oracle: Oracle = new Oracle()
  /** Uploads that were answered with an error though nothing was wrong with them. */
  refusals = 0
  readonly #servers: CaseServer[] = []
  #stopped: number | undefined
  readonly #random: Random
  readonly #isLazy: boolean
  #uploads = 0

  private constructor(engines: readonly [PostgresEngine, S3Engine], { random, isLazy = false }: CaseClusterOptions) {
    ;[this.postgres, this.s3] = engines
    this.#random = random
    this.#isLazy = isLazy
  }

  static async start(ending: Ending, options: CaseClusterOptions): Promise<CaseCluster> {
    const cluster = new CaseCluster(
      await Promise.all([PostgresEngine.start(ending, options.postgres), startS3Engine(ending)]),
      options,
    )
    ending.after(() => cluster.#end())
    // The first one makes the schema.
    cluster.#servers.push(await cluster.#start(0))
    cluster.#servers.push(...(await Promise.all([cluster.#start(1), cluster.#start(2)])))
    return cluster
  }

  /** The client of the server with this number. */
  client(at: number): Client {
    return this.#servers[at % SERVERS].client
  }

  /** Six clients upload to any server, until `until` resolves and each has its last answer. */
  async whileUploading(until: () => Promise<void>): Promise<void> {
    const loading = { isOn: true }
    const uploaders = Array.from({ length: UPLOADERS }, async () => {
      while (loading.isOn) await this.#upload()
    })
    try {
      await until()
    } finally {
      loading.isOn = false
      await Promise.all(uploaders)
    }
  }

  /** So many uploads, one after the other, to servers that are not stopped. */
  async upload(count: number): Promise<void> {
    for (let done = 0; done < count; done++) await this.#upload()
  }

  /** Resolves when so many more uploads were acknowledged. */
  async acknowledged(more: number): Promise<void> {
    const wanted = this.oracle.acknowledgedUploads + more
    await eventually(() => this.oracle.acknowledgedUploads >= wanted, `${more} more uploads are acknowledged`)
  }

  async kill(at: number): Promise<void> {
    const { child, client } = this.#servers[at % SERVERS]
    child.kill('SIGKILL')
    await once(child, 'exit')
    client.close()
  }

  /** Stops a server, as a host does that is paused. Nobody sends it more requests. */
  stop(at: number): void {
    this.#stopped = at % SERVERS
    this.#servers[at % SERVERS].child.kill('SIGSTOP')
  }

  /** Continues what was stopped. */
  continue(): void {
    this.#servers[this.#stopped ?? 0].child.kill('SIGCONT')
    this.#stopped = undefined
  }

  /** Asks every server for an object: whether each has this status, and says when to come again if it has to. */
  async answers(status: number): Promise<boolean> {
    for (const { url, assertRuns } of this.#servers) {
      await assertRuns()
      // A connection that was idle may end in the moment in which it is used again.
      const answer = await fetch(`${url}/objects/north/nothing/single`).catch(() => undefined)
      if (answer === undefined) return false
      await answer.arrayBuffer()
      if (answer.status !== status || (status === 503) !== answer.headers.has('retry-after')) return false
    }
    return true
  }

  async revive(at: number): Promise<void> {
    this.#servers[at % SERVERS] = await this.#start(at % SERVERS)
  }

  /** Nothing waits to be applied any more. Returns how long that took, in milliseconds. */
  async settled(): Promise<number> {
    const beganAtMs = performance.now()
    const backend = this.#backend()
    await eventually(async () => {
      for await (const entries of backend.records.range(keyBounds('pending'))) if (entries.length > 0) return false
      return true
    }, 'no pack waits to be applied')
    await backend.close()
    return performance.now() - beganAtMs
  }

  /** What a server says and what the oracle knows: the differences. */
  verify(at: number, everything: boolean): Promise<readonly string[]> {
    return this.oracle.verify(this.client(at), { random: this.#random, everything })
  }

  /** Ends the servers, and reads the storage from outside. */
  async damages(): Promise<readonly Finding[]> {
    this.#end()
    const backend = this.#backend()
    await backend.ready?.()
    const damages: Finding[] = []
    for await (const finding of checkStore(backend)) if (finding.severity === 'damage') damages.push(finding)
    await backend.close()
    return damages
  }

  async #upload(): Promise<void> {
    const upload = await makeUpload(this.#random, `upload-${this.#uploads++}`)
    const wanted = this.#random.below(SERVERS)
    const at = wanted === this.#stopped ? wanted + 1 : wanted
    const outcome = await this.client(at).upload(upload, this.#random)
    const isRefused = outcome === 'refused' && upload.fate === 'whole'
    if (isRefused) this.refusals++
    this.oracle.note(upload, isRefused || (outcome === 'refused' && upload.fate === 'cut') ? 'unknown' : outcome)
  }

  #backend(): ReturnType<typeof combinedBackend> {
    return combinedBackend({
      records: postgresRecords({ connectionString: this.postgres.url(), connectionsMax: 2 }),
      blobs: s3Blobs(this.s3.options),
    })
  }

  async #start(at: number): Promise<CaseServer> {
    const options: CaseServerOptions = {
      connectionString: this.postgres.url(),
      s3: this.s3.options,
      clockOffsetMs: (at - 1) * CLOCK_DIFFERENCE_MS,
      upkeepSpeed: UPKEEP_SPEED,
      isLazy: this.#isLazy,
    }
    const started = await startCaseServer(options)
    return { ...started, client: new Client(started.url, 'none') }
  }

  #end(): void {
    for (const { child, client } of this.#servers) {
      child.kill('SIGKILL')
      client.close()
    }
  }
}
