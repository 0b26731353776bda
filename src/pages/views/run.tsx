import { canTransition, type LogLine, type RunStatus } from '../../automation/author/run-data.ts'
import type {
  RunCauseCount,
  Model,
  Annotation,
  Page as Part,
  AnnotationFilter,
  Run,
  Version,
} from '../../automation-server/schemas/types.ts'
import type { RunRow } from './run-rows.ts'
import { Annotations } from './annotations.tsx'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { LogLines } from './logs.tsx'
import { formatDuration, formatBytes, ModelFact, StatusBadge, formatStatus, Time } from './parts.tsx'

export interface CreatedVersion {
  readonly version: Version
  readonly model: Model | undefined
}

export interface RunPageProps extends RunRow {
  readonly cause: RunCauseCount
  readonly frame: Frame
  readonly projectId: string
  readonly model: Model | undefined
  readonly createdVersions: readonly CreatedVersion[]
  readonly annotations: Part<Annotation>
  readonly filter: AnnotationFilter
  readonly logs: { readonly lines: readonly LogLine[]; readonly skipped: boolean }
  readonly mayWrite: boolean
  /** Whether this server can run it. */
  readonly hasFunction: boolean
  /** 0 for a page that does not refresh without a script. */
  readonly refreshSeconds: number
}

/** How much progress is announced aloud. */
const SAID_PERCENT = 25

/** No other status may follow. */
export function hasEnded(status: RunStatus): boolean {
  return !canTransition(status, 'succeeded')
}

/** A run in its current state. The script updates the parts whose id begins with `live-`. */
export function RunPage(props: RunPageProps): Html {
  const { frame, projectId, run, automationName, refreshSeconds } = props
  const { urls } = frame
  const title = `Run of ${automationName ?? run.functionId}`
  const ended = hasEnded(run.status)
  const crumbs = [
    { text: 'Projects', href: urls.home },
    { text: projectId, href: urls.project(projectId) },
    { text: 'Runs', href: urls.runs(projectId) },
  ]
  return (
    <Page
      frame={frame}
      title={`${formatStatus(run.status)}: ${title}`}
      crumbs={crumbs}
      live={ended ? undefined : { refreshSeconds }}
    >
      <h1>
        <bdi>{title}</bdi>
      </h1>
      <div id="live" data-events={ended ? undefined : urls.events(projectId, run.id)}>
        <p id="said" class="hidden" role="status">
          {ended ? '' : statusAnnouncement(run)}
        </p>
        <div id="live-state" data-say={statusAnnouncement(run)}>
          <State run={run} hasFunction={props.hasFunction} />
        </div>
        {ended || refreshSeconds === 0 ? null : (
          <noscript>
            <p class="note">
              This page reloads every {refreshSeconds} seconds.{' '}
              <a href={urls.run(projectId, run.id, { refresh: 'no' })}>Stop reloading</a>
            </p>
          </noscript>
        )}
        <div id="live-actions">{props.mayWrite ? <Actions {...props} ended={ended} /> : null}</div>
        <div id="live-facts">
          <Facts {...props} />
        </div>
        <section id="live-made" aria-labelledby="made">
          <h2 id="made">Files and versions</h2>
          <Made {...props} />
        </section>
        <section id="live-annotations" aria-labelledby="annotations">
          <h2 id="annotations">Annotations</h2>
          <Annotations
            urls={urls}
            projectId={projectId}
            run={run}
            annotations={props.annotations}
            filter={props.filter}
          />
        </section>
        <section id="live-logs" aria-labelledby="logs">
          <h2 id="logs">Log</h2>
          <Log {...props} />
        </section>
      </div>
    </Page>
  )
}

function percentOf({ progress }: Pick<Run, 'progress'>): number {
  return Math.floor((progress?.fraction ?? 0) * 100)
}

/** The text for screen readers when it changes. */
export function statusAnnouncement(run: Run): string {
  const percent = percentOf(run) - (percentOf(run) % SAID_PERCENT)
  if (hasEnded(run.status)) return `${formatStatus(run.status)}${run.message === null ? '' : `: ${run.message}`}`
  return run.progress === null || percent === 0
    ? formatStatus(run.status)
    : `${formatStatus(run.status)}, ${percent} percent`
}

function State({ run, hasFunction }: Pick<RunPageProps, 'run' | 'hasFunction'>): Html {
  const { status, message, progress } = run
  return (
    <>
      <p class="state">
        <StatusBadge status={status} />{' '}
        {message === null ? (
          <Waiting run={run} hasFunction={hasFunction} />
        ) : (
          <span class="lines">
            <bdi>{message}</bdi>
          </span>
        )}
      </p>
      {progress === null || hasEnded(status) ? null : (
        <p class="progress">
          <label for="progress">Progress</label>
          <progress id="progress" max={1} value={progress.fraction}>{`${percentOf(run)} %`}</progress>
          <span>
            {`${percentOf(run)} %`}
            {progress.message === null ? null : (
              <>
                : <bdi>{progress.message}</bdi>
              </>
            )}
          </span>
        </p>
      )}
    </>
  )
}

/** The reason why a run is waiting that nothing has started. */
function Waiting({
  run: { status, startedAt, functionId },
  hasFunction,
}: Pick<RunPageProps, 'run' | 'hasFunction'>): Html | null {
  if (status !== 'pending' || startedAt !== null) return null
  return (
    <span class="quiet">
      {hasFunction ? (
        'It starts when other runs have ended.'
      ) : (
        <>
          It waits for a server that has the function <bdi>{functionId}</bdi>. This server does not have it.
        </>
      )}
    </span>
  )
}

function Actions({ frame: { urls }, projectId, run, ended }: RunPageProps & { readonly ended: boolean }): Html {
  return (
    <div class="actions">
      {ended ? (
        <form method="post" action={urls.runAction(projectId, run.id, 'rerun')}>
          <button id="rerun" type="submit" class="second">
            Run again
          </button>
        </form>
      ) : (
        <form method="post" action={urls.runAction(projectId, run.id, 'cancel')}>
          <button id="cancel" type="submit" class="danger">
            Cancel the run
          </button>
        </form>
      )}
    </div>
  )
}

const CAUSES = {
  version: 'by a new version',
  manual: 'by hand',
  rerun: 'as a repetition',
  external: 'by hand, on the person’s own machine',
} as const

function limitWords({ notStarted, runsMax }: RunCauseCount): string {
  const left = notStarted === 1 ? '1 more run was' : `${notStarted} more runs were`
  return `The cause of this run reached the limit of ${runsMax} runs: ${left} not started.`
}

function Facts({ frame: { urls }, projectId, run, cause, automationName, version, model }: RunPageProps): Html {
  const { triggeredBy, createdAt, startedAt, endedAt } = run
  return (
    <dl class="facts">
      <dt>Automation</dt>
      <dd>
        {automationName === undefined ? (
          'deleted since'
        ) : (
          <a href={urls.automation(projectId, run.automationId)}>
            <bdi>{automationName}</bdi>
          </a>
        )}
      </dd>
      <ModelFact urls={urls} projectId={projectId} model={model} />
      <dt>Version</dt>
      <dd>
        {version === undefined ? (
          <code>{run.versionId}</code>
        ) : (
          <bdi>{version.message === '' ? 'No message' : version.message}</bdi>
        )}
      </dd>
      <dt>Started</dt>
      <dd>
        {CAUSES[triggeredBy.kind]}
        {triggeredBy.runId === null ? null : (
          <>
            {' '}
            of <a href={urls.run(projectId, triggeredBy.runId)}>an earlier run</a>
          </>
        )}
        , <Time at={createdAt} />
        {startedAt === null || endedAt === null ? null : `, took ${formatDuration(startedAt, endedAt)}`}
      </dd>
      {cause.notStarted === 0 ? null : (
        <>
          <dt>Limit</dt>
          <dd>{limitWords(cause)}</dd>
        </>
      )}
    </dl>
  )
}

function Made({ frame: { urls }, projectId, run, createdVersions }: RunPageProps): Html {
  if (run.expired.includes('artifacts') && createdVersions.length === 0)
    return <p class="empty">The files were removed at the end of their retention period.</p>
  if (run.artifacts.length === 0 && createdVersions.length === 0)
    return <p class="empty">{hasEnded(run.status) ? 'No files and no versions.' : 'No files and no versions yet.'}</p>
  return (
    <ul class="rows">
      {run.artifacts.map(({ id, name, sizeBytes }) => (
        <li>
          <a class="main" href={urls.artifact(projectId, id)} download>
            <bdi>{name}</bdi>
          </a>
          <span class="quiet">{`File, ${formatBytes(sizeBytes)}`}</span>
        </li>
      ))}
      {createdVersions.map(({ version, model }) => (
        <li>
          <a class="main" href={`${urls.model(projectId, version.modelId)}#version-${version.id}`}>
            <bdi>{version.message === '' ? 'A version' : version.message}</bdi>
          </a>
          <span class="quiet">
            Version of <bdi>{model?.name ?? version.modelId}</bdi>
          </span>
        </li>
      ))}
    </ul>
  )
}

function Log({ frame: { urls }, projectId, run, logs }: RunPageProps): Html {
  if (run.expired.includes('logs')) return <p class="empty">The log was removed at the end of its retention period.</p>
  if (logs.lines.length === 0)
    return <p class="empty">{hasEnded(run.status) ? 'The log is empty.' : 'The log is empty so far.'}</p>
  return (
    <>
      {logs.skipped ? (
        <p class="next">
          <a href={urls.logs(projectId, run.id)}>The whole log</a>
        </p>
      ) : null}
      <LogLines lines={logs.lines} label="Lines of the log" />
      {run.logsTruncated ? <p class="note">The log has reached its size limit. Later lines are omitted.</p> : null}
    </>
  )
}
