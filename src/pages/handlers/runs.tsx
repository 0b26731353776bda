import {
  type LogLine,
  type AnnotationLevel,
  RUN_STATUS_RANK,
  type RunStatus,
} from '../../automation/author/run-data.ts'
import type { AutomationProject } from '../../automation-server/automation-project.ts'
import type { AnnotationFilter, Run } from '../../automation-server/schemas/types.ts'
import { StowageError } from '../../errors.ts'
import type { Answer } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { quoted } from '../../object/id.ts'
import { undefinedIfNotFound, runRows } from '../views/run-rows.ts'
import type { PageServer } from '../server/page-server.tsx'
import type { RunListFilter } from '../views/urls.ts'
import { LogsPage } from '../views/logs.tsx'
import { type CreatedVersion, RunPage } from '../views/run.tsx'
import { RunsPage } from '../views/runs.tsx'
import { pageAnswer, type ProjectVisit, seeOther } from '../server/visit.ts'
import { cursorOf } from './project.tsx'

const RUNS_SHOWN = 50
const AUTOMATIONS_SHOWN = 1_000
const ANNOTATIONS_SHOWN = 50
const LOG_LINES_SHOWN = 100
const LOG_LINES_ON_PAGE = 500
const LOG_LINES_LOOKED_AT = 1_000
const REFRESH_SECONDS = 4
const LEVELS: readonly AnnotationLevel[] = ['SUCCESS', 'INFO', 'WARNING', 'ERROR']

/** Runs: listed, looked at, canceled and repeated. */
export function runResources<H>(server: PageServer<H>): readonly Resource<H>[] {
  return [
    server.project('/runs', {
      GET: async ({ frame, projectId, project, exchange: { query } }) => {
        const filter = runFilter(query)
        const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
        const [{ items, cursor }, automations] = await Promise.all([
          project.runs.list({ limit: RUNS_SHOWN, ...given, ...cursorOf(query) }),
          project.automations.list({ limit: AUTOMATIONS_SHOWN }),
        ])
        return pageAnswer(
          <RunsPage
            frame={frame}
            projectId={projectId}
            rows={await runRows(project, items)}
            cursor={cursor}
            filter={filter}
            automations={automations.items}
          />,
        )
      },
    }),
    server.project('/runs/:runId', { GET: show }),
    server.project('/runs/:runId/logs', {
      GET: async ({ frame, projectId, project, exchange: { params, query } }) => {
        const run = await project.runs.get(params.runId)
        const logs = await project.runs.logs(run.id, { limit: LOG_LINES_ON_PAGE, ...cursorOf(query) })
        const [{ automationName }] = await runRows(project, [run])
        return pageAnswer(
          <LogsPage
            frame={frame}
            projectId={projectId}
            run={run}
            title={`Run of ${automationName ?? run.functionId}`}
            logs={logs}
          />,
        )
      },
    }),
    server.project('/runs/:runId/cancel', {
      POST: async ({ projectId, project, urls, exchange: { params } }) =>
        seeOther(urls.run(projectId, (await canceled(project, params.runId)).id)),
    }),
    server.project('/runs/:runId/rerun', {
      POST: async ({ projectId, project, principal: startedBy, urls, exchange: { params } }) =>
        seeOther(urls.run(projectId, (await project.runs.rerun(params.runId, { startedBy })).id)),
    }),
  ]
}

async function show<H>({
  frame,
  projectId,
  project,
  automation,
  mayWrite,
  exchange: { params, query },
}: ProjectVisit<H>): Promise<Answer> {
  const run = await project.runs.get(params.runId)
  const filter = annotationFilter(query)
  const [[row], model, createdVersions, annotations, logs] = await Promise.all([
    runRows(project, [run]),
    undefinedIfNotFound(project.models.get(run.modelId)),
    createdVersionsOf(project, run),
    project.runs.annotations(run.id, { limit: ANNOTATIONS_SHOWN, ...filter }),
    lastLines(project, run.id),
  ])
  return pageAnswer(
    <RunPage
      {...row}
      frame={frame}
      projectId={projectId}
      cause={run.cause}
      model={model}
      createdVersions={createdVersions}
      annotations={annotations}
      filter={filter}
      logs={logs}
      mayWrite={mayWrite}
      hasFunction={automation.functions().some(({ id }) => id === run.functionId)}
      refreshSeconds={query.get('refresh') === 'no' ? 0 : REFRESH_SECONDS}
    />,
  )
}

/** If the run ended while the person reached for the button, there is nothing to report. */
async function canceled(project: AutomationProject, runId: string): Promise<Run> {
  try {
    return await project.runs.cancel(runId)
  } catch (error) {
    if (error instanceof StowageError && error.code === 'conflict') return project.runs.get(runId)
    throw error
  }
}

async function createdVersionsOf(
  project: AutomationProject,
  { createdVersions }: Run,
): Promise<readonly CreatedVersion[]> {
  const found = await Promise.all(
    createdVersions
      .filter(({ projectId }) => projectId === undefined)
      .map(async ({ modelId, versionId }) => {
        const [version, model] = await Promise.all([
          undefinedIfNotFound(project.versions.get(modelId, versionId)),
          undefinedIfNotFound(project.models.get(modelId)),
        ])
        return version === undefined ? [] : [{ version, model }]
      }),
  )
  return found.flat()
}

/** The end of a log, whose length is bounded. */
async function lastLines(
  project: AutomationProject,
  runId: string,
): Promise<{ readonly lines: readonly LogLine[]; readonly skipped: boolean }> {
  let lines: readonly LogLine[] = []
  let seen = 0
  for (let cursor: string | null | undefined; cursor !== null;) {
    const part: { readonly items: readonly LogLine[]; readonly cursor: string | null } = await project.runs.logs(
      runId,
      { limit: LOG_LINES_LOOKED_AT, ...(cursor === undefined ? {} : { cursor }) },
    )
    lines = [...lines, ...part.items].slice(-LOG_LINES_SHOWN)
    seen += part.items.length
    cursor = part.cursor
  }
  return { lines, skipped: seen > lines.length }
}

function runFilter(query: URLSearchParams): RunListFilter {
  const text = (name: string): string | undefined => {
    const value = query.get(name)
    return value === null || value === '' ? undefined : value
  }
  const status = text('status')
  if (status !== undefined && !Object.hasOwn(RUN_STATUS_RANK, status))
    throw new StowageError(
      'invalid_request',
      `the status ${quoted(status)} is not one; known are ${Object.keys(RUN_STATUS_RANK).join(', ')}`,
    )
  return {
    automationId: text('automationId'),
    modelId: text('modelId'),
    versionId: text('versionId'),
    status: status as RunStatus | undefined,
  }
}

function annotationFilter(query: URLSearchParams): AnnotationFilter {
  const level = LEVELS.find((one) => one === query.get('level'))
  const [category, objectId] = [query.get('category'), query.get('objectId')]
  return {
    ...(level === undefined ? {} : { level }),
    ...(category === null ? {} : { category }),
    ...(objectId === null ? {} : { objectId }),
    ...cursorOf(query),
  }
}
