import type { Model, Version } from '../../automation-server/schemas/types.ts'
import type { RootUsage } from '../../object/roots.ts'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { Empty, Next, Time } from './parts.tsx'
import { VersionText } from './project.tsx'
import { Share } from './usage.tsx'

/** What a version takes. */
export interface VersionUsage {
  readonly usage: RootUsage
  /** `undefined` if it was removed meanwhile. */
  readonly version: Version | undefined
}

interface ModelUsageProps {
  readonly frame: Frame
  readonly projectId: string
  readonly model: Model
  /** A part of the versions, the newest first. */
  readonly versions: readonly VersionUsage[]
  /** The version with which this part ends, if there are more. */
  readonly next: string | undefined
}

/** The usage of the versions of a model. */
export function ModelUsagePage({ frame, projectId, model, versions, next }: ModelUsageProps): Html {
  const { urls } = frame
  const crumbs = [
    { text: 'Projects', href: urls.home },
    { text: projectId, href: urls.project(projectId) },
    { text: 'Storage', href: urls.usage(projectId) },
  ]
  return (
    <Page frame={frame} title={`Storage of ${model.name}`} crumbs={crumbs}>
      <h1>
        Storage of <bdi>{model.name}</bdi>
      </h1>
      <p class="lead">
        Objects that are “only here” belong to no other version and no pin. Deleted versions count as long as they can
        be restored. <a href={urls.model(projectId, model.id)}>Open the model</a>
      </p>
      {versions.length === 0 ? (
        <Empty>There are no versions to show.</Empty>
      ) : (
        <ol class="rows">
          {versions.map((row) => (
            <VersionRow {...row} />
          ))}
        </ol>
      )}
      <Next
        href={next === undefined ? undefined : urls.modelUsage(projectId, model.id, { before: next })}
        what="versions"
      />
    </Page>
  )
}

function VersionRow({ usage, version }: VersionUsage): Html {
  return (
    <li>
      <span class="main lines">{version === undefined ? usage.id : <VersionText version={version} />}</span>
      {version === undefined || version.deletedAt === null ? null : (
        <span class="quiet">
          Deleted <Time at={version.deletedAt} />
        </span>
      )}
      <Share share={usage} />
    </li>
  )
}
