import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Random } from '../../bench/model/random.ts'
import { BOUNDARY, type Upload } from './uploads.ts'

/** `acknowledged`: 200. `refused`: another status. `unknown`: no answer came. */
export type Outcome = 'acknowledged' | 'refused' | 'unknown'

/** Objects that a download brought: texts by id. */
export type Texts = ReadonlyMap<string, string>

const IDS_AT_ONCE = 5_000

/** What clients do, over one server of a crash test. Reads throw on anything but 200. */
export class Client {
  readonly #url: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #agent = new Agent({ keepAlive: true })

  constructor(url: string, token: string) {
    this.#url = url
    this.#headers = { Authorization: `Bearer ${token}` }
  }

  /** One that shall be cut ends its connection in the middle of the body, and has no outcome but `unknown`. */
  async upload(upload: Upload, random: Random): Promise<Outcome> {
    const headers = {
      ...this.#headers,
      'Content-Type': `multipart/form-data; boundary=${BOUNDARY}`,
      'Content-Length': upload.body.length,
    }
    const sending = request(`${this.#url}/objects/${upload.projectId}`, { method: 'POST', headers, agent: this.#agent })
    sending.on('error', () => undefined)
    const answer = once(sending, 'response') as Promise<[IncomingMessage]>
    if (upload.fate === 'cut') {
      sending.write(upload.body.subarray(0, random.below(upload.body.length - 1)), () => sending.destroy())
    } else {
      sending.end(upload.body)
    }
    try {
      const [response] = await answer
      await text(response).catch(() => undefined)
      return response.statusCode === 200 ? 'acknowledged' : 'refused'
    } catch {
      return 'unknown'
    }
  }

  /** Which of the ids are held. */
  async held(projectId: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
    const held = new Set<string>()
    for (let from = 0; from < ids.length; from += IDS_AT_ONCE) {
      const some = ids.slice(from, from + IDS_AT_ONCE)
      const answer = JSON.parse(
        await this.#read(`/api/diff/${projectId}`, {}, { objects: JSON.stringify(some) }),
      ) as Record<string, boolean>
      for (const id of some) if (answer[id]) held.add(id)
    }
    return held
  }

  /** Downloads by list, in a format and coding that `random` picks. */
  async objects(projectId: string, ids: readonly string[], random: Random): Promise<Texts> {
    return this.#texts(`/api/getobjects/${projectId}`, random, { objects: JSON.stringify(ids) })
  }

  /** Downloads a root with everything below it. */
  async graph(projectId: string, rootId: string, random: Random): Promise<Texts> {
    return this.#texts(`/objects/${projectId}/${rootId}?strict`, random)
  }

  close(): void {
    this.#agent.destroy()
  }

  async #texts(path: string, random: Random, body?: unknown): Promise<Texts> {
    const accept = random.pick(['text/plain', 'application/json'])
    const answer = await this.#read(
      path,
      { Accept: accept, 'Accept-Encoding': random.pick(['gzip', 'identity']) },
      body,
    )
    return accept === 'text/plain' ? textsOfLines(answer) : textsOfArray(answer)
  }

  async #read(path: string, accept: Readonly<Record<string, string>>, body?: unknown): Promise<string> {
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const headers = {
      ...this.#headers,
      ...accept,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    }
    const response = await fetch(`${this.#url}${path}`, { ...sent, headers })
    const answer = await response.text()
    if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${answer.slice(0, 300)}`)
    return answer
  }
}

export function textsOfLines(lines: string): Texts {
  if (lines !== '' && !lines.endsWith('\n')) throw new Error('the last line has no end')
  const texts = new Map<string, string>()
  for (const line of lines.split('\n').slice(0, -1)) {
    const tab = line.indexOf('\t')
    if (texts.has(line.slice(0, tab))) throw new Error(`${line.slice(0, tab)} came twice`)
    texts.set(line.slice(0, tab), line.slice(tab + 1))
  }
  return texts
}

/** The texts as `JSON.stringify` writes them, which is how the uploads of these tests are written. */
export function textsOfArray(array: string): Texts {
  const objects = JSON.parse(array) as readonly { readonly id: string }[]
  const texts = new Map(objects.map((object) => [object.id, JSON.stringify(object)]))
  if (texts.size !== objects.length) throw new Error('an object came twice')
  return texts
}
