import type { Model } from '../../automation-server/schemas/types.ts'
import type { Pin, ProjectUsage, UsageShare } from '../../object/roots.ts'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { Empty, formatBytes, formatCount } from './parts.tsx'
import { Pins, type RefusedPin } from './pins.tsx'

interface UsageProps {
  readonly frame: Frame
  readonly projectId: string
  readonly usage: ProjectUsage
  readonly models: ReadonlyMap<string, Model>
  readonly pins: readonly Pin[]
  readonly refused: RefusedPin | undefined
  readonly mayWrite: boolean
}

/** The usage of a project: all of it, by model, and by pin. */
export function UsagePage({ frame, projectId, usage, models, pins, refused, mayWrite }: UsageProps): Html {
  const { urls } = frame
  const crumbs = [
    { text: 'Projects', href: urls.home },
    { text: projectId, href: urls.project(projectId) },
  ]
  return (
    <Page frame={frame} title="Storage" crumbs={crumbs}>
      <h1>Storage</h1>
      <p class="lead">
        {formatCount(usage.objects, 'object')}, {formatBytes(usage.jsonBytes)} of JSON, {formatBytes(usage.storedBytes)}{' '}
        on disk. {formatCount(usage.unreferencedObjects, 'object')} ({formatBytes(usage.unreferencedJsonBytes)}) that no
        version and no pin leads to.
      </p>
      {mayWrite ? (
        <p>
          <a href={urls.collection(projectId)}>Show collectable objects</a>
        </p>
      ) : null}
      <section aria-labelledby="models">
        <h2 id="models">Models</h2>
        <p class="quiet">Deleted models and versions count as long as they can be restored.</p>
        {usage.groups.length === 0 ? (
          <Empty>There is no version yet.</Empty>
        ) : (
          <ul class="rows">
            {usage.groups.map(({ groupId, roots, ...share }) => (
              <li>
                <a class="main" href={urls.model(projectId, groupId)}>
                  <bdi>{models.get(groupId)?.name ?? groupId}</bdi>
                </a>
                <span class="quiet">{formatCount(roots, 'version')}</span>
                <Share share={share} />
              </li>
            ))}
          </ul>
        )}
      </section>
      <Pins urls={urls} projectId={projectId} pins={pins} roots={usage.roots} refused={refused} mayWrite={mayWrite} />
    </Page>
  )
}

function Share({ share: { objects, jsonBytes, ownObjects, ownJsonBytes } }: { readonly share: UsageShare }): Html {
  return (
    <span class="detail">
      {formatCount(objects, 'object')}, {formatBytes(jsonBytes)}; only here: {formatCount(ownObjects, 'object')},{' '}
      {formatBytes(ownJsonBytes)}.
    </span>
  )
}
