import type { Automation, FunctionInfo, Model, Page as Part, Version } from '../../automation-server/schemas/types.ts'
import type { RunRow } from './run-rows.ts'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { formatCount, Empty, Next, Time } from './parts.tsx'
import { RunRows } from './runs.tsx'
import { deletedQuery } from './urls.ts'

export interface ModelRow {
  readonly model: Model
  readonly latest: Version | undefined
}

interface ProjectProps {
  readonly frame: Frame
  readonly projectId: string
  readonly models: Part<ModelRow>
  /** Whether deleted models are in the list. */
  readonly showsDeleted: boolean
  readonly automations: Part<Automation>
  readonly runs: readonly RunRow[]
  readonly functions: readonly FunctionInfo[]
  readonly mayWrite: boolean
}

/** A whole project: its models, its automations, and its runs. */
export function ProjectPage(props: ProjectProps): Html {
  const { frame, projectId, runs, functions, mayWrite } = props
  const { urls } = frame
  return (
    <Page frame={frame} title={projectId} crumbs={[{ text: 'Projects', href: urls.home }]}>
      <h1>
        <bdi>{projectId}</bdi>
      </h1>
      <p class="lead">
        <a href={urls.usage(projectId)}>Storage by model</a>
      </p>
      <section aria-labelledby="models">
        <h2 id="models">Models</h2>
        <Models {...props} />
      </section>
      <section aria-labelledby="automations">
        <h2 id="automations">Automations</h2>
        <Automations {...props} />
      </section>
      <section aria-labelledby="runs">
        <h2 id="runs">Latest runs</h2>
        {runs.length === 0 ? (
          <Empty>Nothing has run yet.</Empty>
        ) : (
          <>
            <RunRows urls={urls} projectId={projectId} rows={runs} />
            <p class="next">
              <a href={urls.runs(projectId)}>All runs</a>
            </p>
          </>
        )}
      </section>
      <section aria-labelledby="functions">
        <h2 id="functions">Functions</h2>
        <Functions frame={frame} projectId={projectId} functions={functions} mayWrite={mayWrite} />
      </section>
    </Page>
  )
}

function Models(props: ProjectProps): Html {
  const { frame, projectId, models, showsDeleted } = props
  const { urls } = frame
  return (
    <>
      {models.items.length === 0 ? (
        <Empty>There are no models to show.</Empty>
      ) : (
        <ul class="rows">
          {models.items.map((row) => (
            <ModelItem {...props} row={row} />
          ))}
        </ul>
      )}
      <Next
        href={
          models.cursor === null
            ? undefined
            : urls.project(projectId, { models: models.cursor, ...deletedQuery(showsDeleted) })
        }
        what="models"
      />
      <p class="next">
        <a href={urls.project(projectId, deletedQuery(!showsDeleted))}>
          {showsDeleted ? 'Hide deleted models' : 'Show deleted models'}
        </a>
      </p>
    </>
  )
}

function ModelItem({
  frame: { urls },
  projectId,
  mayWrite,
  row: { model, latest },
}: ProjectProps & { readonly row: ModelRow }): Html {
  const { id, name, versionCount, deletedAt } = model
  return (
    <li>
      <a class="main" href={urls.model(projectId, id)}>
        <bdi>{name}</bdi>
      </a>
      <span class="quiet">{formatCount(versionCount, 'version')}</span>
      {latest === undefined ? null : (
        <span class="detail">
          Latest: <VersionText version={latest} />
        </span>
      )}
      {deletedAt === null ? null : (
        <span class="detail">
          Deleted <Time at={deletedAt} />.
        </span>
      )}
      {deletedAt === null || !mayWrite ? null : (
        <form method="post" action={urls.modelAction(projectId, id, 'restore')}>
          <button type="submit" class="second">
            Restore<span class="hidden">: {name}</span>
          </button>
        </form>
      )}
    </li>
  )
}

/** The message of a version, and its time. */
export function VersionText({ version: { message, createdAt } }: { readonly version: Version }): Html {
  return (
    <>
      {message === '' ? (
        'no message'
      ) : (
        <>
          “<bdi>{message}</bdi>”
        </>
      )}
      , <Time at={createdAt} />
    </>
  )
}

function Automations({ frame: { urls }, projectId, automations, models, functions, mayWrite }: ProjectProps): Html {
  if (automations.items.length === 0)
    return (
      <Empty>
        There is no automation yet.{' '}
        {mayWrite && functions.length > 0 ? (
          <>
            Choose a <a href="#functions">function</a> to create one.
          </>
        ) : null}
      </Empty>
    )
  const modelNames = new Map(models.items.map(({ model }) => [model.id, model.name]))
  const functionNames = new Map(functions.map(({ id, name }) => [id, name]))
  return (
    <>
      <ul class="rows">
        {automations.items.map(({ id, name, functionId, modelId, trigger, enabled }) => (
          <li>
            <a class="main" href={urls.automation(projectId, id)}>
              <bdi>{name}</bdi>
            </a>
            <span class="quiet">{trigger === 'manual' ? 'By hand' : enabled ? 'On new versions' : 'Not active'}</span>
            <span class="detail">
              <bdi>{functionNames.get(functionId) ?? functionId}</bdi>
              {modelNames.has(modelId) ? (
                <>
                  {' '}
                  on <bdi>{modelNames.get(modelId)}</bdi>
                </>
              ) : null}
            </span>
          </li>
        ))}
      </ul>
      <Next
        href={automations.cursor === null ? undefined : urls.project(projectId, { automations: automations.cursor })}
        what="automations"
      />
    </>
  )
}

function Functions({
  frame: { urls },
  projectId,
  functions,
  mayWrite,
}: Pick<ProjectProps, 'frame' | 'projectId' | 'functions' | 'mayWrite'>): Html {
  if (functions.length === 0) return <Empty>No function is registered with this service.</Empty>
  return (
    <ul class="rows">
      {functions.map(({ id, name, description, release }) => (
        <li>
          <span class="main">
            <bdi>{name}</bdi>
          </span>
          {mayWrite ? (
            <a href={urls.newAutomation(projectId, id)}>
              New automation<span class="hidden"> of {name}</span>
            </a>
          ) : (
            <span class="quiet">{release}</span>
          )}
          {description === '' ? null : (
            <span class="detail">
              <bdi>{description}</bdi>
            </span>
          )}
        </li>
      ))}
    </ul>
  )
}
