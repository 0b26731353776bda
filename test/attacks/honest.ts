import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const OBJECTS = 50
const RETRIES_MAX = 3
const RETRY_MS_MAX = 5_000
/** A pause of a person or a program between two requests. */
const PAUSE_MS = 100

export interface Answer {
  readonly status: number
  readonly text: string
}

export interface Asking {
  readonly method?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** What honest clients saw. */
export interface Honest {
  /** Each from its first attempt to its last byte. */
  readonly tookMs: number[]
  readonly retries: number
}

/**
 * 8 clients on 127.0.0.1 that upload, ask, and download until they are told to stop. Every request succeeds after at
 * most three retries, or they fail.
 */
export class HonestClients {
  readonly #url: string
  readonly #token: string
  readonly #agent = new Agent({ keepAlive: true, localAddress: '127.0.0.1' })
  readonly tookMs: number[] = []
  retries = 0
  /** Others may have been here before: what these send is their own. */
  readonly #name = randomBytes(8).toString('hex')
  #isOver = false
  #working: Promise<void>[] = []

  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  start(clients: number): void {
    this.#working = Array.from({ length: clients }, (_, client) => this.#work(client))
    // What fails is told at the end; until then it must not count as unhandled.
    for (const one of this.#working) one.catch(() => undefined)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#working).finally(() => this.#agent.destroy())
  }

  async #work(client: number): Promise<void> {
    for (let round = 0; !this.#isOver; round++) {
      const objects = Array.from({ length: OBJECTS }, (_, n) => ({
        id: `${this.#name}c${client}r${round}n${n}`,
        text: randomBytes(300).toString('hex'),
      }))
      const ids = JSON.stringify({ objects: objects.map(({ id }) => id) })
      const project = `honest${client}`
      await this.#ask(`/objects/${project}`, { method: 'POST', body: JSON.stringify(objects) })
      const held = await this.#ask(`/api/diff/${project}`, { method: 'POST', body: ids })
      assert.ok(
        Object.values(JSON.parse(held.text) as Record<string, boolean>).every(Boolean),
        'what was taken is held',
      )
      const list = await this.#ask(`/api/getobjects/${project}`, { method: 'POST', body: ids })
      assert.equal((JSON.parse(list.text) as unknown[]).length, OBJECTS)
      const one = await this.#ask(`/objects/${project}/${objects[7].id}`, {})
      assert.deepEqual(JSON.parse(one.text), [objects[7]])
      await this.#ask('/healthz', {})
      await sleep(PAUSE_MS)
    }
  }

  async #ask(path: string, asking: Asking): Promise<Answer> {
    const beganMs = performance.now()
    let last = ''
    for (let attempt = 0; attempt <= RETRIES_MAX; attempt++) {
      if (attempt > 0) this.retries++
      const answer = await this.#once(path, asking).catch((error: Error) => ({ status: 0, text: error.message }))
      if (answer.status === 200) {
        this.tookMs.push(performance.now() - beganMs)
        return answer
      }
      last = `${answer.status} ${answer.text}`
      await sleep(Math.min(RETRY_MS_MAX, 250 * 2 ** attempt))
    }
    throw new Error(`${asking.method ?? 'GET'} ${path} did not succeed after ${RETRIES_MAX} retries: ${last}`)
  }

  #once(path: string, { method = 'GET', body }: Asking): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${this.#token}`,
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
      }
      const req = request(`${this.#url}${path}`, { agent: this.#agent, method, headers }, (res) => {
        let text = ''
        res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        res.on('end', () => resolve({ status: res.statusCode ?? 0, text })).on('error', reject)
      })
      req.on('error', reject).end(body)
    })
  }
}

/** The value that 99 in 100 do not exceed. */
export function percentile99(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * 0.99) - 1)] ?? Number.NaN
}
