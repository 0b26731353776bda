import type { Logger } from '../../logger.ts'
import { describeFailure } from './exit.ts'
import { printError, printNote } from './output.ts'

export const LOG_LEVELS = ['silent', 'error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]
export const LOG_FORMATS = ['text', 'json'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

interface Fields {
  readonly err?: unknown
  readonly code?: string
  readonly requestId?: string
}

/**
 * Lines on stderr, for people or for programs: `text` or one JSON object a line. What lies below the level is not
 * written.
 */
export function commandLogger(level: LogLevel, format: LogFormat): Logger {
  const write = format === 'json' ? writeJson : writeText
  const at =
    (name: Exclude<LogLevel, 'silent'>) =>
    (fields: Fields, message: string): void => {
      // A client that must come back because the server is stopping met no fault.
      if (LOG_LEVELS.indexOf(name) <= LOG_LEVELS.indexOf(level) && fields.code !== 'closing')
        write(name, fields, message)
    }
  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') }
}

function writeJson(level: string, { err, ...fields }: Fields, message: string): void {
  const cause =
    err === undefined ? {} : { cause: describeFailure(err), stack: err instanceof Error ? err.stack : undefined }
  printError(JSON.stringify({ time: new Date().toISOString(), level, message, ...fields, ...cause }))
}

function writeText(_level: string, { err, ...fields }: Fields, message: string): void {
  if (err === undefined)
    return printNote(
      `${message}${Object.entries(fields)
        .map(([name, value]) => ` ${name}=${shown(value)}`)
        .join('')}`,
    )
  const { requestId, code } = fields
  const where = requestId === undefined ? '' : `request ${requestId} failed with ${code ?? 'no code'}: `
  printNote(
    `${where}${describeFailure(err instanceof Error && err.message === message ? err : new Error(message, { cause: err }))}`,
  )
}

/** No text of a client can look like another field or another line. */
function shown(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value * 100) / 100)
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return /^[\w./:+-]+$/.test(text) ? text : JSON.stringify(text)
}
