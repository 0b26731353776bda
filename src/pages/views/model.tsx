import type { Model, Page as Part, Version } from '../../automation-server/schemas/types.ts'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { counted, Empty, Next, Time } from './parts.tsx'

interface ModelProps {
  readonly frame: Frame
  readonly projectId: string
  readonly model: Model
  readonly versions: Part<Version>
}

export function ModelPage({ frame, projectId, model, versions }: ModelProps): Html {
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
        {counted(model.versionCount, 'version')}, created <Time at={model.createdAt} />.{' '}
        <a href={urls.runs(projectId, { modelId: model.id })}>Runs on this model</a>
      </p>
      <section aria-labelledby="versions">
        <h2 id="versions">Versions</h2>
        {versions.items.length === 0 ? (
          <Empty>There is no version here.</Empty>
        ) : (
          <ol class="rows">
            {versions.items.map((version) => (
              <VersionRow frame={frame} projectId={projectId} version={version} />
            ))}
          </ol>
        )}
        <Next
          href={versions.cursor === null ? undefined : urls.model(projectId, model.id, { cursor: versions.cursor })}
          what="versions"
        />
      </section>
    </Page>
  )
}

function VersionRow({
  frame: { urls },
  projectId,
  version,
}: Pick<ModelProps, 'frame' | 'projectId'> & { readonly version: Version }): Html {
  const { id, message, source, runId, createdAt, rootObjectId, modelId } = version
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
        .{' '}
        <a href={urls.runs(projectId, { modelId, versionId: id })}>
          Runs on it<span class="hidden">: {message}</span>
        </a>
      </span>
    </li>
  )
}
