import assert from 'node:assert/strict'
import type { ObjectService } from '../../src/index.ts'
import type { OpenApiDocument } from '../../src/openapi/description/types.ts'
import { jsonUpload } from '../http/served.ts'
import { type Answered, describing } from '../mounts/ask.ts'
import { Conformance } from '../openapi/conformance.ts'
import { FuzzedAutomation } from '../openapi/fuzzed-automation.ts'
import { PROJECT_ID, UNKNOWN_ID } from '../../src/openapi/objects/examples.ts'
import { allowedAttempts, type Attempt, brokenAttempts, type Effort } from './attempts.ts'

/**
 * Valid requests may ask for what is not there, or must not be done any more; none of these says that the request is
 * wrong.
 */
const STATUSES_OF_STATE: ReadonlySet<number> = new Set([403, 404, 406, 409, 412, 416])
/**
 * What depends on more than the description says: the inputs of the one function, the base of a delta, and the time.
 */
const CODES_OF_STATE: ReadonlySet<string> = new Set(['invalid_inputs', 'invalid_delta'])
const OF_THE_TIME = /it must be in the future$/
/** The value of a record that is imported depends on its kind. */
const OF_THE_KIND = /^\[\d+\]\.value\b/
/** Operations that take away what others need, so they come last: the version before its model. */
const LAST = /^delete|^cancel|^remove/

/** A service with everything that the examples of its own description are about. */
export class Validated {
  readonly conformance: Conformance
  readonly #service: ObjectService
  readonly #automation: FuzzedAutomation

  private constructor(automation: FuzzedAutomation, document: OpenApiDocument) {
    this.conformance = new Conformance(document)
    this.#service = automation.service
    this.#automation = automation
  }

  static async start(): Promise<Validated> {
    const automation = await FuzzedAutomation.start({})
    const { service } = automation
    const incomplete = [{ id: 'incomplete', child: { referencedId: UNKNOWN_ID } }]
    await service.fetch(new Request(`http://in.process/objects/${PROJECT_ID}`, jsonUpload(incomplete)))
    const served = await service.fetch(new Request('http://in.process/api/openapi.json'))
    return new Validated(automation, (await served.json()) as OpenApiDocument)
  }

  close(): Promise<void> {
    return this.#service.close({ graceMs: 0 })
  }

  allowed(effort: Effort): Attempt[] {
    const operations = this.conformance.operations()
    const isLast = ({ operation }: (typeof operations)[number]): boolean => LAST.test(operation.operationId)
    const last = operations.filter(isLast).toSorted((a, b) => depthOf(b.template) - depthOf(a.template))
    return [...operations.filter((one) => !isLast(one)), ...last].flatMap((found, turn) =>
      allowedAttempts(this.conformance, found, effort, turn),
    )
  }

  broken(effort: Effort): Attempt[] {
    // An answer to OPTIONS says which methods a path takes, whatever its parameters are.
    return this.conformance
      .operations()
      .filter(({ method }) => method !== 'options')
      .flatMap((found, turn) => brokenAttempts(this.conformance, found, effort, turn))
  }

  /** Why the answer to a valid request is not good; `undefined` if it is. */
  async refusal(attempt: Attempt): Promise<{ readonly status: number; readonly wrong: string | undefined }> {
    const answered = await this.#answer(attempt)
    const { status, body } = answered
    const isGood =
      status < 400 ||
      STATUSES_OF_STATE.has(status) ||
      (status === 400 &&
        body !== '' &&
        dependsOnMore(JSON.parse(body) as { readonly code: string; readonly message: string }))
    return { status, wrong: isGood ? this.#undescribed(attempt, answered) : `answers ${status} ${body}` }
  }

  /** Why the answer to a request that breaks a rule is not good; `undefined` if it is. */
  async acceptance(attempt: Attempt): Promise<string | undefined> {
    const answered = await this.#answer(attempt)
    const { status, body } = answered
    if (status < 400 || status >= 500) return `answers ${status} ${body.slice(0, 200)}`
    const undescribed = this.#undescribed(attempt, answered)
    if (undescribed !== undefined || attempt.found.method === 'head') return undescribed
    const { message, statusCode } = JSON.parse(body) as { readonly message: string; readonly statusCode: number }
    assert.equal(statusCode, status)
    // A body that is too large is refused before anybody knows what is in it.
    return status === 413 || attempt.named.some((one) => message.includes(one))
      ? undefined
      : `does not name ${attempt.named.map((one) => `"${one}"`).join(' or ')}: ${status} ${message}`
  }

  #undescribed({ found }: Attempt, answered: Answered): string | undefined {
    const path = found.template.replaceAll(/\{\w+\}/g, 'x')
    const problems = this.conformance.problems({ method: found.method, path }, answered)
    return problems.length === 0 ? undefined : problems.join('; ')
  }

  async #answer({ sent }: Attempt): Promise<Answered> {
    const { method = 'GET', path, headers = {}, body } = await this.#automation.real(sent)
    const response = await this.#service.fetch(
      new Request(`http://in.process${path}`, {
        method,
        headers: { 'x-request-id': 'the-same', ...headers },
        ...(body === undefined ? {} : { body: Buffer.from(body) }),
      }),
    )
    const bytes = Buffer.from(await response.arrayBuffer())
    return { status: response.status, headers: describing(response.headers), body: bytes.toString('latin1') }
  }
}

function dependsOnMore({ code, message }: { readonly code: string; readonly message: string }): boolean {
  return CODES_OF_STATE.has(code) || OF_THE_TIME.test(message) || OF_THE_KIND.test(message)
}

function depthOf(path: string): number {
  return path.split('/').length
}
