import type { InFlightRequests } from '../async/in-flight-requests.ts'
import { StowageError } from '../errors.ts'
import type { StoreTotals } from '../object/graph-store.ts'
import type { RootSources } from './roots.ts'

/** The totals of all projects. Not a request in flight: a scrape of the metrics must not show itself. */
export async function totalsOf(
  { store, ready }: Pick<RootSources, 'store' | 'ready'>,
  inFlightRequests: InFlightRequests,
): Promise<StoreTotals> {
  inFlightRequests.checkOpen()
  if (store.totals === undefined) throw new StowageError('not_supported', 'totals need a storage backend')
  await ready()
  inFlightRequests.checkOpen()
  return store.totals.read()
}
