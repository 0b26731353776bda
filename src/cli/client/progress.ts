import { printNote } from '../common/output.ts'
import { RateMeter } from './rate.ts'
import { formatBytes, formatCount, formatDuration, printable } from '../common/format.ts'

/** The progress of a transfer. */
export interface TransferState {
  /** Bytes, counted as the total is. */
  readonly done: number
  readonly total: number | undefined
  /** Of `done`, bytes that did not have to be moved this time. */
  readonly skipped?: number
  /** Tells more. */
  readonly text: string
}

/** Objects that are moved by the thousand. */
export interface MovedObjects {
  readonly objects: number
  /** Of these, the objects that the target lacked. */
  readonly sent: number
}

/** Objects are counted, and not their bytes: there is no rate to show. */
export function objectsState({ objects, sent }: MovedObjects, project?: string): TransferState {
  const text = `${formatCount(objects, 'object')}, ${sent.toLocaleString('en-US')} new`
  return { done: 0, total: undefined, text: project === undefined ? text : `${printable(project)}: ${text}` }
}

/** A request failed and is tried again. */
export interface Wait {
  /** The reason for the wait. */
  readonly text: string
  /** How long the command waits at most, from now on. */
  readonly leftMs: number
}

/** Shows a transfer on stderr: a bar on a terminal, otherwise a line now and then. */
export interface Progress {
  update(state: TransferState): void
  /** Shown until the next update. */
  wait(wait: Wait): void
  stop(): void
}

const LINE_EVERY_MS = 10_000
/** Shorter waits are not shown. */
const WAIT_UNTOLD_MS = 2_000
const DRAWS_PER_SECOND = 5
const BAR_CHARACTERS = 24

/** Tells nothing. */
export const NO_PROGRESS: Progress = { update: () => undefined, wait: () => undefined, stop: () => undefined }

/** Shows a bar, if standard error is a terminal that can go back, otherwise lines. */
export async function openProgress(): Promise<Progress> {
  return hasBar(process.stderr, process.env) ? openBar() : lineProgress()
}

/** A bar is drawn over itself, which not every terminal can. */
export function hasBar({ isTTY = false }: { readonly isTTY?: boolean }, { TERM }: NodeJS.ProcessEnv): boolean {
  return isTTY && TERM !== 'dumb'
}

async function openBar(): Promise<Progress> {
  const { default: progress } = await import('cli-progress')
  const story = new ProgressText(performance.now())
  const bar = new progress.SingleBar({
    format: (_: unknown, { progress: share }: { progress: number }) => story.bar(share, performance.now()),
    stream: process.stderr,
    fps: DRAWS_PER_SECOND,
    clearOnComplete: true,
    hideCursor: true,
    gracefulExit: false,
  })
  bar.start(1, 0)
  // A second Ctrl-C ends the process at once; the terminal shall have its cursor again.
  const restore = (): void => bar.stop()
  process.once('exit', restore)
  return {
    update: (state) => {
      const { done, total } = state
      story.update(state, performance.now())
      bar.setTotal(Math.max(1, total ?? 1))
      bar.update(total === undefined ? 0 : Math.min(done, total))
    },
    wait: (wait) => story.wait(wait, performance.now()),
    stop: () => {
      process.off('exit', restore)
      bar.stop()
    },
  }
}

/** A line every ten seconds, and one soon after a wait begins. */
export function lineProgress(
  print: (line: string) => void = printNote,
  now: () => number = () => performance.now(),
): Progress {
  const story = new ProgressText(now())
  let nextAtMs = now() + LINE_EVERY_MS
  let isWaiting = false
  const tell = (): void => {
    if (now() < nextAtMs) return
    nextAtMs = now() + LINE_EVERY_MS
    print(story.line(now()))
  }
  return {
    update: (state) => {
      story.update(state, now())
      isWaiting = false
      tell()
    },
    wait: (wait) => {
      story.wait(wait, now())
      if (!isWaiting) nextAtMs = Math.min(nextAtMs, now() + WAIT_UNTOLD_MS)
      isWaiting = true
      tell()
    },
    stop: () => undefined,
  }
}

/** The texts about a transfer at a moment. All times are those of `performance.now`. */
export class ProgressText {
  readonly #rate: RateMeter
  #state: TransferState | undefined
  #wait: { readonly text: string; readonly untilMs: number } | undefined

  constructor(nowMs: number) {
    this.#rate = new RateMeter(nowMs)
  }

  update(state: TransferState, nowMs: number): void {
    this.#state = state
    this.#wait = undefined
    this.#rate.add(state.done - (state.skipped ?? 0), nowMs)
  }

  /** If several requests wait, the command ends with the first that is given up. */
  wait({ text, leftMs }: Wait, nowMs: number): void {
    const before = this.#wait?.untilMs ?? Infinity
    const untilMs = nowMs + leftMs
    this.#wait = { text, untilMs: before > nowMs ? Math.min(before, untilMs) : untilMs }
  }

  /** One line for a terminal; `share` is between 0 and 1. */
  bar(share: number, nowMs: number): string {
    if (this.#state?.total === undefined) return this.#text(nowMs)
    const full = Math.round(share * BAR_CHARACTERS)
    const percent = String(Math.floor(share * 100)).padStart(3)
    return `${'█'.repeat(full)}${'░'.repeat(BAR_CHARACTERS - full)} ${percent} % ${this.#text(nowMs)}`
  }

  /** One line for a log. */
  line(nowMs: number): string {
    const { done = 0, total = 0 } = this.#state ?? {}
    const share =
      total === 0 || this.#wait !== undefined ? '' : `${Math.floor((Math.min(done, total) / total) * 100)} %: `
    return share + this.#text(nowMs)
  }

  #text(nowMs: number): string {
    if (this.#wait !== undefined) {
      const { text, untilMs } = this.#wait
      return untilMs === Infinity ? text : `${text}, for ${formatDuration(untilMs - nowMs)} more`
    }
    if (this.#state === undefined) return ''
    return [this.#pace(this.#state, nowMs), this.#state.text].filter((part) => part !== '').join(', ')
  }

  #pace({ done, total }: TransferState, nowMs: number): string {
    const rate = this.#rate.bytesPerSecond(nowMs)
    if (rate === undefined || rate < 1) return ''
    const pace = `${formatBytes(rate)}/s`
    return total === undefined || total <= done
      ? pace
      : `${pace}, ${formatDuration(((total - done) / rate) * 1_000)} left`
  }
}
