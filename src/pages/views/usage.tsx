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
        {formatCount(usage.objects, 'object')}, {formatBytes(usage.jsonBytes)} of JSON.{' '}
        {formatCount(usage.unreferencedObjects, 'object')} ({formatBytes(usage.unreferencedJsonBytes)}) that no version
        and no pin leads to.
      </p>
      {mayWrite ? (
        <p>
          <a href={urls.collection(projectId)}>Collection of objects</a>
        </p>
      ) : null}
      <OnDisk usage={usage} />
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
                <a href={urls.modelUsage(projectId, groupId)}>
                  {formatCount(roots, 'version')}
                  <span class="hidden"> of {models.get(groupId)?.name ?? groupId}: storage</span>
                </a>
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

function OnDisk({ usage: { storedBytes, retiredBytes, planBytes } }: Pick<UsageProps, 'usage'>): Html {
  return (
    <section aria-labelledby="disk">
      <h2 id="disk">On disk</h2>
      <dl class="facts">
        <dt>Packs</dt>
        <dd>{formatBytes(storedBytes)}: the objects, compressed</dd>
        <dt>Replaced packs</dt>
        <dd>{formatBytes(retiredBytes)}: they stay for a day after the merge that replaced them</dd>
        <dt>Plans</dt>
        <dd>{formatBytes(planBytes)}: they make downloads fast; the server makes and removes them</dd>
      </dl>
      <p class="quiet">Records and the files of runs are not counted.</p>
    </section>
  )
}

/** The size of something, and what a deletion of it could free. */
export function Share({
  share: { objects, jsonBytes, ownObjects, ownJsonBytes },
}: {
  readonly share: UsageShare
}): Html {
  return (
    <span class="detail">
      {formatCount(objects, 'object')}, {formatBytes(jsonBytes)}; only here: {formatCount(ownObjects, 'object')},{' '}
      {formatBytes(ownJsonBytes)}.
    </span>
  )
}
