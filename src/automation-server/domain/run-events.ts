import { onAbort } from '../../async/abort.ts'
import type { Environment } from '../../environment.ts'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import type { LogLine } from '../../automation/author/run-data.ts'
import type { Domain } from './domain.ts'
import { isFinal, type RunRecord, runView } from './run-record.ts'
import type { RunAddress } from './run-signals.ts'

/**
 * How much of a run a client has seen: the revision of its record, and the lines of its log. Its text is the id of an
 * event.
 */
export interface EventPosition {
  readonly revision: number
  readonly lines: number
}

/**
 * One event, in the order of display. `position` is set on the last event of a state, so that a client that reconnects
 * misses nothing.
 */
export interface RunEvent {
  readonly type: 'log' | 'status' | 'progress' | 'annotations' | 'outputs'
  readonly data: unknown
  readonly position?: EventPosition
}

const LINES_AT_ONCE = 100
const POSITION = /^(\d{1,15})\.(\d{1,10})$/

/** Throws `invalid_request` for a text that is not the id of an event. */
export function parsePosition(text: string): EventPosition {
  const [, revision, lines] = POSITION.exec(text) ?? []
  if (revision === undefined)
    throw new StowageError(
      'invalid_request',
      `Last-Event-ID is ${quoted(text)}, which is not the id of an event of a run`,
    )
  return { revision: Number(revision), lines: Number(lines) }
}

export function positionText({ revision, lines }: EventPosition): string {
  return `${revision}.${lines}`
}

/**
 * The events of a run from `seen` on, in batches; an empty batch is a sign of life. Reads the storage after each
 * change, so a slow reader gets fewer and later states and never a backlog. Ends after the final status, when `signal`
 * aborts, and when the service is about to close.
 */
export async function* runEvents(
  domain: Domain,
  run: RunAddress,
  seen: EventPosition,
  options: { readonly signal: AbortSignal; readonly pollMs: number; readonly heartbeatMs: number },
): AsyncGenerator<readonly RunEvent[]> {
  const change = new ChangeSignal(domain, run, options)
  let { revision, lines } = seen
  let shown: RunRecord | undefined
  const { environment } = domain.options
  let quietSinceMs = environment.monotonicMs()
  try {
    while (!change.isOver) {
      const {
        scope,
        stored: { value: record },
      } = await domain.changes.found(run.projectId, run.runId)
      for (; lines < record.logLines;) {
        const { items } = await domain.logs.listFrom(
          scope,
          run.runId,
          lines,
          Math.min(LINES_AT_ONCE, record.logLines - lines),
        )
        if (items.length === 0) break
        yield items.map((line, at) => logEvent(line, { revision, lines: lines + at + 1 }))
        lines += items.length
      }
      if (record.revision > revision) {
        revision = record.revision
        yield stateEvents(record, shown, { revision, lines })
        shown = record
        quietSinceMs = environment.monotonicMs()
      }
      if (isFinal(record.status)) return
      if (environment.monotonicMs() - quietSinceMs >= options.heartbeatMs) {
        yield []
        quietSinceMs = environment.monotonicMs()
      }
      await change.happened()
    }
  } finally {
    change.close()
  }
}

function logEvent(line: LogLine, position: EventPosition): RunEvent {
  return { type: 'log', data: line, position }
}

/** The differences from the state that was shown. */
function stateEvents(record: RunRecord, shown: RunRecord | undefined, position: EventPosition): readonly RunEvent[] {
  const pick = (run: RunRecord): readonly RunEvent[] => {
    const { status, message, progress, annotations, createdVersions, artifacts } = runView(run)
    return [
      { type: 'progress', data: progress },
      { type: 'annotations', data: annotations },
      { type: 'outputs', data: { createdVersions, artifacts } },
      { type: 'status', data: { status, message } },
    ]
  }
  const before = shown === undefined ? [] : pick(shown)
  const changed = pick(record).filter(({ data }, at) => JSON.stringify(data) !== JSON.stringify(before[at]?.data))
  return changed.map((event, at) => (at === changed.length - 1 ? { ...event, position } : event))
}

/** Waits for the next change of a run, or for so long that a signal of one may have been missed. */
class ChangeSignal {
  readonly #stop: () => void
  readonly #signals: readonly AbortSignal[]
  readonly #pollMs: number
  readonly #environment: Environment
  #isChanged = false
  #wake: () => void = () => undefined

  constructor(
    { signals, options: { environment } }: Domain,
    run: RunAddress,
    { signal, pollMs }: { readonly signal: AbortSignal; readonly pollMs: number },
  ) {
    const changed = (): void => {
      this.#isChanged = true
      this.#wake()
    }
    const unlisten = signals.listen(run, changed)
    const unregister = onAbort(signal, changed)
    this.#signals = [signal, signals.closing]
    this.#pollMs = pollMs
    this.#environment = environment
    this.#stop = () => {
      unlisten()
      unregister()
    }
  }

  get isOver(): boolean {
    return this.#signals.some(({ aborted }) => aborted)
  }

  async happened(): Promise<void> {
    if (!this.#isChanged && !this.isOver) {
      await new Promise<void>((resolve) => {
        const timer = this.#environment.setTimer(this.#pollMs, resolve)
        this.#wake = () => {
          timer.cancel()
          resolve()
        }
      })
    }
    this.#isChanged = false
  }

  close(): void {
    this.#stop()
  }
}
