import { printNote } from '../output.ts'

/** How a transfer goes on, on stderr: a bar on a terminal, else a line now and then. */
export interface Progress {
  /** `done` counts as the total does; `text` tells more. */
  update(done: number, total: number | undefined, text: string): void
  stop(): void
}

const LINE_EVERY_MS = 10_000
const DRAWS_PER_SECOND = 5

export async function openProgress(quiet: boolean): Promise<Progress> {
  if (quiet) return { update: () => undefined, stop: () => undefined }
  return hasBar(process.stderr, process.env) ? openBar() : openLines()
}

/** A bar is drawn over itself, which not every terminal can. */
export function hasBar({ isTTY = false }: { readonly isTTY?: boolean }, { TERM }: NodeJS.ProcessEnv): boolean {
  return isTTY && TERM !== 'dumb'
}

async function openBar(): Promise<Progress> {
  const { default: progress } = await import('cli-progress')
  let isKnown = false
  const format = (
    _: unknown,
    params: { progress: number; eta: number; barsize?: number },
    payload: { text?: string },
  ): string => lineOf(params.progress, payload.text ?? '', isKnown)
  const bar = new progress.SingleBar({
    format,
    stream: process.stderr,
    fps: DRAWS_PER_SECOND,
    clearOnComplete: true,
    hideCursor: true,
    gracefulExit: false,
  })
  bar.start(1, 0, { text: '' })
  // A second Ctrl-C ends the process at once; the terminal shall have its cursor again.
  const restore = (): void => bar.stop()
  process.once('exit', restore)
  return {
    update: (done, total, text) => {
      isKnown = total !== undefined
      bar.setTotal(Math.max(1, total ?? 1))
      bar.update(total === undefined ? 0 : Math.min(done, total), { text })
    },
    stop: () => {
      process.off('exit', restore)
      bar.stop()
    },
  }
}

function lineOf(share: number, text: string, isKnown: boolean): string {
  if (!isKnown) return text
  const width = 24
  const full = Math.round(share * width)
  return `${'█'.repeat(full)}${'░'.repeat(width - full)} ${String(Math.floor(share * 100)).padStart(3)} % ${text}`
}

function openLines(): Progress {
  let nextAtMs = performance.now() + LINE_EVERY_MS
  return {
    update: (done, total, text) => {
      if (performance.now() < nextAtMs) return
      nextAtMs = performance.now() + LINE_EVERY_MS
      printNote(
        total === undefined || total === 0 ? text : `${Math.floor((Math.min(done, total) / total) * 100)} %: ${text}`,
      )
    },
    stop: () => undefined,
  }
}
