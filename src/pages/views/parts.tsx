import type { RunStatus } from '../../automation/author/run-data.ts'
import type { Child, Html } from './html.ts'
import type { Urls } from './urls.ts'

const STATUS_WORDS: { readonly [S in RunStatus]: string } = {
  pending: 'Waiting',
  initializing: 'Starting',
  running: 'Running',
  succeeded: 'Succeeded',
  failed: 'Failed',
  canceled: 'Canceled',
  exception: 'Exception',
  timeout: 'Timed out',
}

export function formatStatus(status: RunStatus): string {
  return STATUS_WORDS[status]
}

export function StatusBadge({ status }: { readonly status: RunStatus }): Html {
  return <span class={`badge ${status}`}>{STATUS_WORDS[status]}</span>
}

/**
 * ISO 8601 as people read it, such as "5 Nov 2026, 09:30:00 UTC". `toUTCString` has a fixed format (ECMAScript, section
 * 21.4.4.43), and a formatter of `Intl` costs 8 MB of memory.
 */
export function Time({ at }: { readonly at: string }): Html {
  const [, day, month, year, time] = new Date(at).toUTCString().split(' ')
  return <time datetime={at}>{`${Number(day)} ${month} ${year}, ${time} UTC`}</time>
}

export function Empty({ children }: { readonly children?: Child }): Html {
  return <p class="empty">{children}</p>
}

/** The link to the next part of a list, if there is one. */
export function Next({ href, what }: { readonly href: string | undefined; readonly what: string }): Html | null {
  if (href === undefined) return null
  return (
    <p class="next">
      <a rel="next" href={href}>{`Next ${what}`}</a>
    </p>
  )
}

/** Words for a count, such as "1 run" and "2 runs". */
export function formatCount(count: number, one: string, many: string = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}

const UNITS: readonly string[] = ['bytes', 'KB', 'MB', 'GB']
const UNIT_STEP = 1_024

export function formatBytes(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, bytes < 1 ? 0 : Math.floor(Math.log(bytes) / Math.log(UNIT_STEP)))
  return `${(bytes / UNIT_STEP ** unit).toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit]}`
}

/** The duration, such as "1 min 4 s". */
export function formatDuration(fromIso: string, toIso: string): string {
  const seconds = Math.max(0, (Date.parse(toIso) - Date.parse(fromIso)) / 1_000)
  if (seconds < 0.1) return 'less than 0.1 s'
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  const minutes = Math.floor(seconds / 60)
  return minutes < 60
    ? `${minutes} min ${Math.floor(seconds % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

const PERIODS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
  [1_000, 'second'],
]

/** A period in the largest unit of which it is a multiple, such as "14 days" or "90 minutes". */
export function formatPeriod(ms: number): string {
  const [unitMs, unit] = PERIODS.find(([one]) => ms % one === 0) ?? PERIODS[PERIODS.length - 1]
  return formatCount(ms / unitMs, unit)
}

/** The model of an automation or a run, in a list of facts. */
export function ModelFact(props: {
  readonly urls: Urls
  readonly projectId: string
  readonly model: { readonly id: string; readonly name: string } | undefined
}): Html {
  const { urls, projectId, model } = props
  return (
    <>
      <dt>Model</dt>
      <dd>
        {model === undefined ? (
          'deleted'
        ) : (
          <a href={urls.model(projectId, model.id)}>
            <bdi>{model.name}</bdi>
          </a>
        )}
      </dd>
    </>
  )
}
