/**
 * Mutants that no seed below 1,000 is known to find. Some of them need a coincidence of a few milliseconds that the
 * stories hit too seldom; others were not looked for since the workload changed. `npm run soak` leaves them out.
 */
export const NOT_FOUND_YET: ReadonlySet<string> = new Set([
  'a merge takes effect in the layout before',
  'the blobs of merged packs go at once',
  'a merge begins though objects moved meanwhile',
  'packs are merged again at once',
  'a walk is shared while an upload writes its ids',
  'a plan holds for its sequence though an upload was writing its ids',
  'ids that were written behind a sweep stay',
  'a sweep that met an upload does not come again',
  'the commit of a pack does not look at the mark of its blob',
  'the mark of a blob goes with it',
  'a commit that lost its answer counts as refused',
  'ids that were written once more for freed objects stay',
  'a pin whose closure loses a merged pack is damage',
  'a walk that packs were moved away from does not begin again',
  'a download that meets the sweep of its project is damage',
  'a pack that went with its project is damage',
  'a reindex takes a full disk for damage',
  'a reindex takes a tombstone that a crash cut short for damage',
])
