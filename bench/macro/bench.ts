import { randomBytes } from 'node:crypto'
import type { Exchange, Job, Report } from '../load/job.ts'
import { LoadClient } from '../load/client.ts'
import type { FileServer } from '../nginx.ts'
import type { Dataset, Version } from './dataset.ts'
import { AnswerFiles } from './answer-files.ts'
import type { ChangePlace } from './source.ts'
import type { TestedServer } from './tested-server.ts'

export interface BenchOptions {
  readonly server: TestedServer
  readonly nginx: FileServer | undefined
  readonly scratch: string
  /** Rounds of each row. */
  readonly repetitions: number
  /** Attempts at a row while others use the machine. */
  readonly attemptsMax: number
  /** How long a row of many small requests is measured. */
  readonly durationMs: number
  /** Until slow readers have received all that kernel and server buffer for them. */
  readonly settleMs: number
}

/** The media type and the coding of an answer. */
export interface Form {
  readonly accept: 'text/plain' | 'application/json'
  readonly encoding: 'gzip' | 'identity'
}

export const LINES_GZIP: Form = { accept: 'text/plain', encoding: 'gzip' }

/** What all rows share: the server, the clients, and the models that it already holds. */
export class Bench {
  readonly server: TestedServer
  readonly nginx: FileServer | undefined
  readonly repetitions: number
  readonly attemptsMax: number
  readonly durationMs: number
  readonly settleMs: number
  readonly scratch: string
  readonly files: AnswerFiles
  /** Sends the measured requests. */
  readonly client: LoadClient
  /** Sends what goes on beside them. */
  readonly besideClient: LoadClient
  readonly healthClient: LoadClient
  /** The project that holds a model, by the name of the model. */
  readonly #held = new Map<string, Promise<string>>()
  readonly #versions = new Map<string, Promise<Version>>()

  private constructor(options: BenchOptions, clients: readonly LoadClient[]) {
    this.server = options.server
    this.nginx = options.nginx
    this.repetitions = options.repetitions
    this.attemptsMax = options.attemptsMax
    this.durationMs = options.durationMs
    this.settleMs = options.settleMs
    this.scratch = options.scratch
    ;[this.client, this.besideClient, this.healthClient] = clients
    this.files = new AnswerFiles(options)
  }

  static async start(options: BenchOptions): Promise<Bench> {
    return new Bench(options, await Promise.all([LoadClient.start(), LoadClient.start(), LoadClient.start()]))
  }

  async stop(): Promise<void> {
    await Promise.all([this.client, this.besideClient, this.healthClient].map(async (client) => await client.close()))
  }

  get authorization(): Readonly<Record<string, string>> {
    return { Authorization: `Bearer ${this.server.token}` }
  }

  graph(projectId: string, rootId: string, form: Form = LINES_GZIP, query: string = ''): Exchange {
    return {
      method: 'GET',
      path: `${this.server.prefix}/objects/${projectId}/${rootId}${query}`,
      headers: { ...this.authorization, Accept: form.accept, 'Accept-Encoding': form.encoding },
    }
  }

  single(projectId: string, id: string): Exchange {
    return {
      method: 'GET',
      path: `${this.server.prefix}/objects/${projectId}/${id}/single`,
      headers: { ...this.authorization, Accept: 'application/json', 'Accept-Encoding': 'identity' },
    }
  }

  list(projectId: string, ids: readonly string[]): Exchange {
    return {
      method: 'POST',
      path: `${this.server.prefix}/api/getobjects/${projectId}`,
      headers: {
        ...this.authorization,
        'Content-Type': 'application/json',
        Accept: 'text/plain',
        'Accept-Encoding': 'gzip',
      },
      body: JSON.stringify({ objects: JSON.stringify(ids) }),
    }
  }

  diff(projectId: string, ids: readonly string[]): Exchange {
    return {
      method: 'POST',
      path: `${this.server.prefix}/api/diff/${projectId}`,
      headers: { ...this.authorization, 'Content-Type': 'application/json', Accept: 'application/json' },
      body: JSON.stringify({ objects: JSON.stringify(ids) }),
    }
  }

  uploads(projectId: string, version: Version): readonly Exchange[] {
    return version.uploadFiles.map((uploadFile) => ({
      method: 'POST',
      path: `${this.server.prefix}/objects/${projectId}`,
      headers: this.authorization,
      uploadFile,
      kind: 'upload',
    }))
  }

  async run(job: Omit<Job, 'origin'>): Promise<Report> {
    return await this.client.run({ ...job, origin: this.server.origin })
  }

  async upload(projectId: string, version: Version): Promise<Report> {
    return await this.run({ connections: 4, exchanges: this.uploads(projectId, version) })
  }

  /** A project whose name is not in use. */
  freshProject(name: string): string {
    return this.server.projects.fresh(`${name}-${randomBytes(3).toString('hex')}`)
  }

  /** Says that a project holds the first version of a model, so that rows need not upload it again. */
  noteHeld(dataset: Dataset, projectId: string): void {
    if (!this.#held.has(dataset.name)) this.#held.set(dataset.name, Promise.resolve(projectId))
  }

  /** The project that holds the first version of a model; uploads it if none does. */
  async held(dataset: Dataset): Promise<string> {
    return await keptOrMade(this.#held, dataset.name, async () => {
      const projectId = this.freshProject(dataset.name)
      await this.upload(projectId, dataset.first)
      return projectId
    })
  }

  /** A later version of a model, which is uploaded if the project does not hold it yet. */
  async heldLater(dataset: Dataset, changed: number, place: ChangePlace = 'everywhere'): Promise<Version> {
    return await keptOrMade(this.#versions, `${dataset.name} ${changed} ${place}`, async () => {
      const projectId = await this.held(dataset)
      const version = await dataset.later(changed, place)
      await this.upload(projectId, version)
      return version
    })
  }
}

/** Rows that are planned at the same time share one upload: a client runs one job at a time. */
async function keptOrMade<T>(kept: Map<string, Promise<T>>, name: string, make: () => Promise<T>): Promise<T> {
  const known = kept.get(name)
  if (known !== undefined) return await known
  const making = make()
  kept.set(name, making)
  return await making
}
