import { ClientError, toldError } from '../common/errors.ts'
import type { Answer } from './answer.ts'

/** Lines are short; only a broken server sends more than this without an end. */
const LINE_BYTES_MAX = 1_048_576

interface Line<R> {
  readonly progress?: unknown
  readonly report?: R
  readonly error?: unknown
}

/**
 * The report at the end of an answer in lines of JSON. Throws the error that stands there instead, `invalid_answer` for
 * lines that are none, and `network_failed` for an answer that ends before either.
 */
export async function readLongWork<R>(answer: Answer, onProgress?: (progress: never) => void): Promise<R> {
  answer.checkType('application/x-ndjson')
  for await (const text of textLines(answer)) {
    const { progress, report, error } = parsed<R>(text, answer.what)
    if (error !== undefined) throw toldError(error, answer.what)
    if (report !== undefined) return report
    if (progress !== undefined && progress !== null) onProgress?.(progress as never)
  }
  throw new ClientError('network_failed', `${answer.what} ended before its result`, { isRetryable: true })
}

async function* textLines(answer: Answer): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of answer.chunks()) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > LINE_BYTES_MAX)
      throw new ClientError('invalid_answer', `${answer.what} sent a line of more than ${LINE_BYTES_MAX} characters`)
    yield* lines
  }
}

function parsed<R>(text: string, what: string): Line<R> {
  try {
    const value = JSON.parse(text) as Line<R> | null
    if (typeof value === 'object' && value !== null) return value
  } catch (cause) {
    throw new ClientError('invalid_answer', `${what} sent a line that is not JSON`, { cause })
  }
  throw new ClientError('invalid_answer', `${what} sent a line that is not an object`)
}
