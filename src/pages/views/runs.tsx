import { RUN_STATUS_RANK, type RunStatus } from '../../automation/author/run-data.ts'
import type { Automation } from '../../automation-server/schemas/types.ts'
import type { RunRow } from './run-rows.ts'
import type { RunListFilter, Urls } from './urls.ts'
import { cut, type Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { Empty, Next, StatusBadge, formatStatus, Time } from './parts.tsx'

const MESSAGE_CHARACTERS_MAX = 200

export function RunRows({
  urls,
  projectId,
  rows,
}: {
  readonly urls: Urls
  readonly projectId: string
  readonly rows: readonly RunRow[]
}): Html {
  return (
    <ul class="rows">
      {rows.map(({ run, automationName, version }) => (
        <li>
          <span class="main titled">
            <a href={urls.run(projectId, run.id)}>
              <bdi>{automationName ?? run.functionId}</bdi>
              <span class="hidden">, run of {run.createdAt}</span>
            </a>{' '}
            <StatusBadge status={run.status} />
          </span>
          <span class="quiet">
            <Time at={run.createdAt} />
          </span>
          <span class="detail">
            {version === undefined || version.message === '' ? null : (
              <>
                On “<bdi>{cut(version.message, MESSAGE_CHARACTERS_MAX)}</bdi>”.{' '}
              </>
            )}
            {run.message === null ? null : <bdi>{cut(run.message, MESSAGE_CHARACTERS_MAX)}</bdi>}
          </span>
        </li>
      ))}
    </ul>
  )
}

interface RunsProps {
  readonly frame: Frame
  readonly projectId: string
  readonly rows: readonly RunRow[]
  readonly cursor: string | null
  readonly filter: RunListFilter
  readonly automations: readonly Automation[]
}

export function RunsPage(props: RunsProps): Html {
  const { frame, projectId, rows, cursor, filter } = props
  const { urls } = frame
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  return (
    <Page
      frame={frame}
      title={`Runs of ${projectId}`}
      crumbs={[
        { text: 'Projects', href: urls.home },
        { text: projectId, href: urls.project(projectId) },
      ]}
    >
      <h1>Runs</h1>
      <Filter {...props} />
      {rows.length > 0 ? (
        <RunRows urls={urls} projectId={projectId} rows={rows} />
      ) : (
        <Empty>{isFiltered ? 'This run does not exist.' : 'Nothing has run yet.'}</Empty>
      )}
      <Next href={cursor === null ? undefined : urls.runs(projectId, { ...filter, cursor })} what="runs" />
    </Page>
  )
}

function Filter({ frame: { urls }, projectId, filter, automations }: RunsProps): Html {
  const { status, automationId, modelId, versionId } = filter
  return (
    <form class="inline" method="get" action={urls.runs(projectId)} aria-label="Filter">
      {modelId === undefined ? null : <input type="hidden" name="modelId" value={modelId} />}
      {versionId === undefined ? null : <input type="hidden" name="versionId" value={versionId} />}
      <div class="field">
        <label for="status">Status</label>
        <select id="status" name="status">
          <option value="">Any</option>
          {(Object.keys(RUN_STATUS_RANK) as RunStatus[]).map((one) => (
            <option value={one} selected={one === status}>
              {formatStatus(one)}
            </option>
          ))}
        </select>
      </div>
      <div class="field">
        <label for="automationId">Automation</label>
        <select id="automationId" name="automationId">
          <option value="">Any</option>
          {automations.map(({ id, name }) => (
            <option dir="auto" value={id} selected={id === automationId}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <button type="submit" class="second">
        Show
      </button>
      {modelId === undefined && versionId === undefined ? null : <a href={urls.runs(projectId)}>All runs</a>}
    </form>
  )
}
