import type { CollectionCause, CollectionReport, ObjectAmount } from '../../object/collection.ts'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { Empty, formatBytes, formatCount, formatPeriod } from './parts.tsx'
import type { Urls } from './urls.ts'

interface CollectionProps {
  readonly frame: Frame
  readonly projectId: string
  /** What a collection would do now; `undefined` for a project without objects. */
  readonly report: CollectionReport | undefined
}

interface ReportProps {
  readonly urls: Urls
  readonly projectId: string
  readonly report: CollectionReport
}

const CAUSE_WORDS: { readonly [C in CollectionCause]: string } = {
  neverReferenced: 'They were never part of a version or a pin',
  oldVersion: 'They were part of versions or pins that no longer exist',
}
const SKIPPED_WORDS: { readonly [S in NonNullable<CollectionReport['skipped']>]: string } = {
  noRoots: 'This project has neither a version nor a pin, so only objects that somebody chose are collected.',
  damaged:
    'A pack of this project cannot be read, so it is not collected. The operator of the server can find the damage with a check.',
}
const CAUSES = Object.keys(CAUSE_WORDS) as CollectionCause[]

/** What a collection would do, the button that does it, and the undo. */
export function CollectionPage({ frame, projectId, report }: CollectionProps): Html {
  const { urls } = frame
  const crumbs = [
    { text: 'Projects', href: urls.home },
    { text: projectId, href: urls.project(projectId) },
    { text: 'Storage', href: urls.usage(projectId) },
  ]
  return (
    <Page frame={frame} title="Collection" crumbs={crumbs}>
      <h1>Collection</h1>
      {report === undefined ? (
        <Empty>This project holds no objects, so there is nothing to collect.</Empty>
      ) : (
        <Collection urls={urls} projectId={projectId} report={report} />
      )}
    </Page>
  )
}

function Collection(props: ReportProps): Html {
  const { skipped, freed, replacedCopies, olderThanMs, undoMs } = props.report
  return (
    <>
      <p class="lead">
        A collection takes away objects that no version and no pin leads to and that are older than{' '}
        {formatPeriod(olderThanMs)}. They can be restored for {formatPeriod(undoMs)}; a later collection frees them for
        good.
      </p>
      {skipped === null ? null : <Empty>{SKIPPED_WORDS[skipped]}</Empty>}
      {skipped === null || freed.objects + replacedCopies.objects > 0 ? (
        <>
          <Wanted {...props} />
          <Actions {...props} />
        </>
      ) : null}
      <Restorable {...props} />
    </>
  )
}

function Wanted({ report: { skipped, condemned, freed, replacedCopies, young } }: ReportProps): Html {
  return (
    <>
      <section aria-labelledby="now">
        <h2 id="now">A collection now</h2>
        <dl class="facts">
          <dt>Takes away</dt>
          <dd>{amountWords(condemned)}</dd>
          {CAUSES.filter((cause) => condemned.byCause[cause].objects > 0).map((cause) => (
            <>
              <dt>{amountWords(condemned.byCause[cause])}</dt>
              <dd class="quiet">{CAUSE_WORDS[cause]}</dd>
            </>
          ))}
          <dt>Frees for good</dt>
          <dd>{amountWords(freed)}</dd>
          {replacedCopies.objects === 0 ? null : (
            <>
              <dt>Drops replaced copies</dt>
              <dd>
                {amountWords(replacedCopies, 'copy', 'copies')}. An upload stored these objects again, so the objects
                stay.
              </dd>
            </>
          )}
          {skipped !== null || young.objects === 0 ? null : (
            <>
              <dt>Too young</dt>
              <dd>{amountWords(young)}</dd>
            </>
          )}
        </dl>
      </section>
    </>
  )
}

function Actions({ urls, projectId, report: { condemned, freed, replacedCopies, undoMs } }: ReportProps): Html {
  if (condemned.objects + freed.objects + replacedCopies.objects === 0)
    return <Empty>There is nothing to collect.</Empty>
  return (
    <div class="actions">
      <details class="confirm">
        <summary>Collect …</summary>
        <form method="post" action={urls.collection(projectId)}>
          <p>
            {freed.objects === 0
              ? `Everything that it takes away can be restored for ${formatPeriod(undoMs)}.`
              : `${formatCount(freed.objects, 'object')} cannot be restored afterwards.`}
          </p>
          <button type="submit" class="danger">
            Collect now
          </button>
        </form>
      </details>
    </div>
  )
}

function Restorable({ urls, projectId, report: { restorable, freed } }: ReportProps): Html | null {
  if (restorable.objects + freed.objects === 0) return null
  return (
    <section aria-labelledby="undo">
      <h2 id="undo">Undo</h2>
      <p>
        {amountWords({
          objects: restorable.objects + freed.objects,
          jsonBytes: restorable.jsonBytes + freed.jsonBytes,
        })}{' '}
        that earlier collections took away can be restored.
      </p>
      <form method="post" action={urls.collection(projectId, 'restore')}>
        <button type="submit" class="second">
          Restore them
        </button>
      </form>
    </section>
  )
}

function amountWords(
  { objects, jsonBytes }: Pick<ObjectAmount, 'objects' | 'jsonBytes'>,
  one = 'object',
  many?: string,
): string {
  return objects === 0 ? 'nothing' : `${formatCount(objects, one, many)}, ${formatBytes(jsonBytes)} of JSON`
}
