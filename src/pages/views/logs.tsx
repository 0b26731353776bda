import type { LogLine } from '../../automation/author/run-data.ts'
import type { Page as Part, Run } from '../../automation-server/schemas/types.ts'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { Next } from './parts.tsx'

/** It is scrollable, so it takes the keyboard focus. */
export function LogLines({ lines, label }: { readonly lines: readonly LogLine[]; readonly label: string }): Html {
  return (
    <div id="log-lines" class="log" role="region" aria-label={label} tabindex={0}>
      <ol>
        {lines.map(({ atMs, level, message }) => (
          <li class={level}>
            <time datetime={new Date(atMs).toISOString()}>{new Date(atMs).toISOString().slice(11, 23)}</time>{' '}
            <span class="level">{level}</span> <bdi>{message}</bdi>
          </li>
        ))}
      </ol>
    </div>
  )
}

interface LogsProps {
  readonly frame: Frame
  readonly projectId: string
  readonly run: Run
  readonly title: string
  readonly logs: Part<LogLine>
}

export function LogsPage({ frame, projectId, run, title, logs }: LogsProps): Html {
  const { urls } = frame
  const crumbs = [
    { text: 'Projects', href: urls.home },
    { text: projectId, href: urls.project(projectId) },
    { text: 'Runs', href: urls.runs(projectId) },
    { text: title, href: urls.run(projectId, run.id) },
  ]
  return (
    <Page frame={frame} title={`Log of ${title}`} crumbs={crumbs}>
      <h1>Log</h1>
      {logs.items.length === 0 ? (
        <p class="empty">
          {run.expired.includes('logs')
            ? 'The log was removed at the end of its retention period.'
            : 'The log is empty.'}
        </p>
      ) : (
        <LogLines lines={logs.items} label="Lines of the log" />
      )}
      <Next
        href={logs.cursor === null ? undefined : urls.logs(projectId, run.id, { cursor: logs.cursor })}
        what="lines"
      />
      {logs.cursor === null && run.logsTruncated ? (
        <p class="note">The log has reached its size limit. Later lines are omitted.</p>
      ) : null}
    </Page>
  )
}
