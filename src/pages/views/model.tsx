import type { Model, Page as Part, Version } from '../../automation-server/schemas/types.ts'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { formatCount, Empty, Next, Time } from './parts.tsx'
import { type RefusedRetention, Retention } from './retention.tsx'
import { deletedQuery } from './urls.ts'

interface ModelProps {
  readonly frame: Frame
  readonly projectId: string
  readonly model: Model
  readonly versions: Part<Version>
  /** How many versions the retention rule would delete now. */
  readonly expired: { readonly count: number; readonly hasMore: boolean } | undefined
  readonly refused: RefusedRetention | undefined
  /** Whether deleted versions are in the list. */
  readonly showsDeleted: boolean
  readonly mayWrite: boolean
}

export function ModelPage(props: ModelProps): Html {
  const { frame, projectId, model, versions, showsDeleted } = props
  const { urls } = frame
  const crumbs = [
    { text: 'Projects', href: urls.home },
    { text: projectId, href: urls.project(projectId) },
  ]
  return (
    <Page frame={frame} title={model.name} crumbs={crumbs}>
      <h1>
        <bdi>{model.name}</bdi>
      </h1>
      <p class="lead">
        {formatCount(model.versionCount, 'version')}, created <Time at={model.createdAt} />.{' '}
        <a href={urls.runs(projectId, { modelId: model.id })}>Runs on this model</a>{' '}
        <a href={urls.modelUsage(projectId, model.id)}>Storage by version</a>
      </p>
      {model.deletedAt === null ? null : (
        <p>
          This model was deleted <Time at={model.deletedAt} />. Its automations no longer start.
        </p>
      )}
      <section aria-labelledby="versions">
        <h2 id="versions">Versions</h2>
        {versions.items.length === 0 ? (
          <Empty>There are no versions to show.</Empty>
        ) : (
          <ol class="rows">
            {versions.items.map((version) => (
              <VersionRow {...props} version={version} />
            ))}
          </ol>
        )}
        <Next
          href={
            versions.cursor === null
              ? undefined
              : urls.model(projectId, model.id, { cursor: versions.cursor, ...deletedQuery(showsDeleted) })
          }
          what="versions"
        />
        <p class="next">
          <a href={urls.model(projectId, model.id, deletedQuery(!showsDeleted))}>
            {showsDeleted ? 'Hide deleted versions' : 'Show deleted versions'}
          </a>
        </p>
      </section>
      <Retention {...props} urls={urls} />
      <ModelActions {...props} />
    </Page>
  )
}

function ModelActions({ frame: { urls }, projectId, model: { id, deletedAt }, mayWrite }: ModelProps): Html | null {
  if (!mayWrite) return null
  if (deletedAt !== null)
    return (
      <form method="post" action={urls.modelAction(projectId, id, 'restore')}>
        <button type="submit">Restore this model</button>
      </form>
    )
  return (
    <div class="actions">
      <details class="confirm">
        <summary>Delete …</summary>
        <form method="post" action={urls.modelAction(projectId, id, 'delete')}>
          <p>Its automations no longer start. Its runs stay. You can restore it for some days.</p>
          <button type="submit" class="danger">
            Delete this model
          </button>
        </form>
      </details>
    </div>
  )
}

function VersionActions({
  frame: { urls },
  projectId,
  model,
  mayWrite,
  version: { id, message, kept, deletedAt },
}: ModelProps & { readonly version: Version }): Html | null {
  if (!mayWrite || model.deletedAt !== null) return null
  const named = <span class="hidden">: {message}</span>
  if (deletedAt !== null)
    return (
      <form method="post" action={urls.versionAction(projectId, model.id, id, 'restore')}>
        <button type="submit" class="second">
          Restore{named}
        </button>
      </form>
    )
  const path = (action: 'delete' | 'keep' | 'unkeep'): string => urls.versionAction(projectId, model.id, id, action)
  return (
    <div class="actions">
      <form method="post" action={path(kept ? 'unkeep' : 'keep')}>
        <button type="submit" class="second">
          {kept ? 'Stop keeping' : 'Keep'}
          {named}
        </button>
      </form>
      <details class="confirm">
        <summary>Delete …{named}</summary>
        <form method="post" action={path('delete')}>
          <p>Its runs stay. You can restore it for some days.</p>
          <button type="submit" class="danger">
            Delete this version
          </button>
        </form>
      </details>
    </div>
  )
}

function VersionRow(props: ModelProps & { readonly version: Version }): Html {
  const {
    frame: { urls },
    projectId,
    version,
  } = props
  const { deletedAt, id, kept, message, source, runId, createdAt, rootObjectId, modelId } = version
  return (
    <li id={`version-${id}`}>
      <span class="main lines">
        <bdi>{message === '' ? 'No message' : message}</bdi>
      </span>
      <span class="quiet">
        <Time at={createdAt} />
      </span>
      <span class="detail">
        {runId === null ? (
          source === null ? null : (
            <>
              From <bdi>{source}</bdi>.{' '}
            </>
          )
        ) : (
          <>
            Made by <a href={urls.run(projectId, runId)}>a run</a>.{' '}
          </>
        )}
        Root object{' '}
        <code>
          <bdi>{rootObjectId}</bdi>
        </code>
        . {kept ? 'Retention rules do not delete it. ' : null}
        <a href={urls.runs(projectId, { modelId, versionId: id })}>
          Runs on this version<span class="hidden">: {message}</span>
        </a>
        {deletedAt === null ? null : (
          <>
            {' '}
            Deleted <Time at={deletedAt} />.
          </>
        )}
      </span>
      <VersionActions {...props} />
    </li>
  )
}
