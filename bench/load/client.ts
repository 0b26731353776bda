import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { FromClient, Job, Report, ToClient } from './job.ts'
import { JobRunner } from './job-runner.ts'

/** Work that goes on until it is stopped. */
export interface Running {
  /** Ends it and reports the answers that were complete by then, whatever their status. */
  stop(): Promise<Report>
}

/** A client process: its processor time is not the server's, nor that of the process that measures. */
export class LoadClient {
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  static async start(): Promise<LoadClient> {
    const child = fork(fileURLToPath(import.meta.url), ['load-client'], { serialization: 'advanced' })
    const client = new LoadClient(child)
    process.once('exit', () => child.kill())
    await client.#next('ready')
    return client
  }

  /** Runs a job to its end. Throws if a request failed or had another status than 2xx. */
  async run(job: Job): Promise<Report> {
    return checked(await this.runAnyStatus(job))
  }

  /** Runs a job to its end, whatever the statuses of its answers. */
  async runAnyStatus(job: Job): Promise<Report> {
    this.#send({ type: 'run', job })
    const { report } = await this.#next('done')
    return report
  }

  /** Begins a job that goes on beside others; resolves once all its connections are open. */
  async begin(job: Job): Promise<Running> {
    this.#send({ type: 'run', job })
    await this.#next('connected')
    const done = this.#next('done')
    done.catch(() => undefined)
    return {
      stop: async () => {
        this.#send({ type: 'stop' })
        return (await done).report
      },
    }
  }

  async close(): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.kill()
    await ended
  }

  #send(message: ToClient): void {
    this.#child.send(message)
  }

  async #next<T extends FromClient['type']>(type: T): Promise<FromClient & { readonly type: T }> {
    return await new Promise((resolve, reject) => {
      const end = (error?: Error): void => {
        this.#child.off('message', onMessage).off('exit', onExit)
        if (error !== undefined) reject(error)
      }
      const onMessage = (message: FromClient): void => {
        if (message.type === 'failed') end(new Error(message.message))
        if (message.type !== type) return
        end()
        resolve(message as FromClient & { readonly type: T })
      }
      const onExit = (code: number | null): void => end(new Error(`the load client ended with code ${code}`))
      this.#child.on('message', onMessage).on('exit', onExit)
    })
  }
}

/** Throws if a request failed or had another status than 2xx. */
export function checked(report: Report): Report {
  const [failure] = report.failures
  if (failure !== undefined) throw new Error(`${report.failures.length} requests failed, the first: ${failure}`)
  const bad = report.timings.find(({ status }) => status < 200 || status > 299)
  if (bad !== undefined) throw new Error(`a request ${bad.kind} was answered with status ${bad.status}`)
  return report
}

function serveJobs(): void {
  let runner: JobRunner | undefined
  const tell = (message: FromClient): void => {
    process.send?.(message)
  }
  process.on('message', (message: ToClient) => {
    if (message.type === 'stop') {
      runner?.stop()
      return
    }
    runner = new JobRunner(message.job, () => tell({ type: 'connected' }))
    runner.run().then(
      (report) => tell({ type: 'done', report }),
      (error: unknown) => tell({ type: 'failed', message: String(error) }),
    )
  })
  process.on('disconnect', () => process.exit(0))
  tell({ type: 'ready' })
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === 'load-client') serveJobs()
