import type { Principal } from '../../access/access.ts'
import type { Exchange, Operation } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { checkNoRun } from '../domain/run-access.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer } from './json.ts'

/** The value that an operation answers with as JSON. */
export type Answering<H> = (exchange: Exchange<H>, principal: Principal) => unknown

export interface Handlers<H> {
  /** For principals with the right to read. */
  readonly reading: (answer: Answering<H>) => Operation<H>
  /** For principals with the right to write, runs among them. */
  readonly writing: (answer: Answering<H>, status?: 200 | 201) => Operation<H>
  /** For principals with the right to write that are not runs. */
  readonly changing: (answer: Answering<H>, status?: 200 | 201) => Operation<H>
  /** The same without a body in the answer. */
  readonly removing: (remove: (exchange: Exchange<H>) => Promise<void>) => Operation<H>
}

export function handlersOf<H>({ guard }: HttpDeps<H>['context']): Handlers<H> {
  const allowed = async (exchange: Exchange<H>): Promise<Principal> => {
    const principal = await guard(exchange, 'write')
    checkNoRun(principal)
    return principal
  }
  return {
    reading: (answer) => async (exchange) => jsonAnswer(200, await answer(exchange, await guard(exchange, 'read'))),
    writing:
      (answer, status = 200) =>
      async (exchange) =>
        jsonAnswer(status, await answer(exchange, await guard(exchange, 'write'))),
    changing:
      (answer, status = 200) =>
      async (exchange) =>
        jsonAnswer(status, await answer(exchange, await allowed(exchange))),
    removing: (remove) => async (exchange) => {
      await allowed(exchange)
      await remove(exchange)
      return { status: 204, headers: { 'Cache-Control': 'private, no-store' } }
    },
  }
}

/** A path whose parameters are ids. */
export function resource<H>(path: string, operations: Resource<H>['operations']): Resource<H> {
  return { path, check: checkParams, operations }
}
