import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

/** The line that a server prints once it listens, as `stowage serve --json` does. */
export interface ServerLine {
  readonly url: string
  readonly pid: number
  readonly pagesUrl?: string
  readonly metricsUrl?: string
  /** Signs a browser in, once and within five minutes; only for a server that was started with a token. */
  readonly signInUrl?: string
}

export interface RunningServer extends ServerLine {
  /** Resolves with the exit code once the server has ended, for whatever reason. */
  readonly ended: Promise<number | null>
  /** Ends the server as Ctrl-C does and waits for it. */
  stop(): Promise<void>
}

export interface StartLimits {
  /** The time until a server prints its line. */
  readonly startTimeoutMs?: number
  /** The time in which a server that did not start ends by itself. It is then asked to end, and killed after as long again. */
  readonly endTimeoutMs?: number
}

const START_TIMEOUT_MS = 120_000
const END_TIMEOUT_MS = 2_000
const KILL_TIMEOUT_MS = 30_000
/** A process may print more before its line, or after it. */
const KEPT_CHARACTERS_MAX = 65_536
const SHOWN_CHARACTERS_MAX = 400

/**
 * The server in a process that was just started; resolves once it listens. The process ends with this one. If its first
 * line is not a `ServerLine`, or does not come in time, the process is ended and the error shows what it printed.
 */
export async function serverOf(
  child: ChildProcess,
  { startTimeoutMs = START_TIMEOUT_MS, endTimeoutMs = END_TIMEOUT_MS }: StartLimits = {},
): Promise<RunningServer> {
  const { stdout } = child
  if (stdout === null) throw new TypeError('the server was started without a pipe')
  const endWithThisProcess = (): boolean => child.kill()
  process.once('exit', endWithThisProcess)
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  void ended.finally(() => process.off('exit', endWithThisProcess)).catch(() => undefined)
  let printed = ''
  const line = new Promise<void>((resolve) => {
    stdout.setEncoding('utf8').on('data', (text: string) => {
      if (printed.length < KEPT_CHARACTERS_MAX) printed += text
      if (printed.includes('\n') || printed.length >= KEPT_CHARACTERS_MAX) resolve()
    })
  })
  const isLate = await Promise.race([
    line.then(() => false),
    once(child, 'close').then(() => false),
    delay(startTimeoutMs, true, { ref: false }),
  ])
  const started = serverLineOf(printed.split('\n', 1)[0])
  if (started === undefined) {
    const end = await endOf(child, endTimeoutMs)
    const problem = isLate ? `was not ready within ${startTimeoutMs} ms` : 'did not start with its line of JSON'
    throw new Error(`the server ${problem}: it printed ${shown(printed)} and ${end}`)
  }
  const stop = async (): Promise<void> => {
    child.kill()
    await ended
  }
  return { ...started, ended, stop }
}

/** `undefined` if the text is not the line of a server. */
export function serverLineOf(text: string): ServerLine | undefined {
  try {
    const value = JSON.parse(text) as Partial<ServerLine> | null
    return typeof value?.url === 'string' && typeof value.pid === 'number' ? (value as ServerLine) : undefined
  } catch {
    return undefined
  }
}

/** How the process ended. One that does not end by itself is stopped. */
async function endOf(child: ChildProcess, timeoutMs: number): Promise<string> {
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  const exit = hasEnded() ? undefined : once(child, 'exit')
  for (const signal of [undefined, 'SIGTERM', 'SIGKILL'] as const) {
    if (signal !== undefined) child.kill(signal)
    const waitMs = signal === 'SIGKILL' ? KILL_TIMEOUT_MS : timeoutMs
    await Promise.race([exit, delay(waitMs, undefined, { ref: false })])
    if (!hasEnded()) continue
    return signal === undefined ? `ended with ${child.signalCode ?? `code ${child.exitCode}`}` : 'was stopped'
  }
  return 'could not be stopped'
}

function shown(printed: string): string {
  if (printed === '') return 'nothing'
  const text = printed.trimEnd()
  return JSON.stringify(text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)} ...` : text)
}
