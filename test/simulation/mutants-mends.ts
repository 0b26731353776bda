import type { Edit, TakenOut } from './mutant.ts'

const COMMITTER = 'src/store/ingest/committer.ts'
const CATALOG = 'src/store/records/pack-catalog.ts'
const PLANS = 'src/store/plan/plan-cache.ts'
const DOUBTS = 'src/store/plan/plan-doubts.ts'
const TEXTS = 'src/store/plan/plan-texts.ts'
const SWEEP = 'src/store/upkeep/blob-sweep.ts'

/** What finds ids that are left of removed projects, whatever left them: it hides other faults of sweeps for ever. */
const LEFT_IDS_STAY: Edit = {
  path: 'src/store/store-upkeep.ts',
  replace: [
    [
      'if (await this.#sweep.condemnUnnamed(closing)) await markLeftIds(records, closing)',
      'await this.#sweep.condemnUnnamed(closing)',
    ],
  ],
}

/**
 * Every fault of durability that the core once had and that was mended, planted again: the mend is taken out. Mends that
 * are no mutants, because today's code cannot have their fault:
 *
 * - A pack that could not be applied was not tried again before a restart. Today it is tried again at once, and every
 *   living server looks for such packs as well: without the first, the second makes up for it within 90 seconds.
 * - A collection waited for a merge that a dead server had begun. Today every server ends such merges once a minute, so
 *   a collection that does not end one itself is only refused for that long.
 * - A server went on when the storage failed while it applied packs at its start. The look every 30 seconds applies them.
 * - Tables of packs were remembered by the id of the pack without its project. Ids of packs are 128 random bits.
 * - The sweep destroyed a generation though the record of its project did not say that it was removed, and the sweep of
 *   blobs took those of projects whose record was lost. Only a record that disappears without a trace leads there; a
 *   storage that keeps what it acknowledged has none. `test/crash` damages files so.
 * - The eviction of a plan removed one that another server had just made. Plans are caches: it costs time alone.
 * - `reindex` did not find projects of which only tombstones or blobs were left. That needs lost records, too.
 * - A commit that lowers totals did not expect them when they were absent. Today a reindex counts them before a server
 *   opens the storage, so they are never absent. What it does expect is a mutant.
 */
export const MENDS_TAKEN_OUT: readonly TakenOut[] = [
  {
    name: 'a walk is shared while an upload writes its ids',
    fault: 'a download joined the walk of another that had begun earlier, and lacked what was acknowledged in between',
    path: 'src/store/closure/shared-walks.ts',
    replace: [['if (pending !== undefined) return walk(signal)\n', '']],
  },
  {
    name: 'a plan holds for its sequence though an upload was writing its ids',
    fault: 'a plan was looked at while a committed pack wrote its ids, and then hid the objects of that pack',
    path: PLANS,
    replace: [['if (wasQuiet) plan.checkedSequence', 'if (wasQuiet || true) plan.checkedSequence']],
  },
  {
    name: 'ids that were written behind a sweep stay',
    fault: 'an upload wrote its ids while its project was swept, and they stayed for ever',
    path: COMMITTER,
    replace: [['await records.commit({ put: [garbageEntryAgain(pack, this.#parts.environment)] })\n', '']],
    also: [LEFT_IDS_STAY],
  },
  {
    name: 'a sweep that met an upload does not come again',
    fault: 'the mark of a removed project went although an upload was still writing its ids',
    path: 'src/store/upkeep/removal.ts',
    replace: [['return pending === 0', 'return pending >= 0']],
    also: [
      {
        path: COMMITTER,
        replace: [['await records.commit({ put: [garbageEntryAgain(pack, this.#parts.environment)] })\n', '']],
      },
      LEFT_IDS_STAY,
    ],
  },
  {
    name: 'a plan that was made while its project was removed stays',
    fault: 'a plan was stored behind the sweep of its project, and stayed for ever',
    path: 'src/store/plan/plan-records.ts',
    replace: [
      ['if (isRemoved(head, generation)) {', 'if (generation < 0) {'],
      ['expect: [...mine, { key: headKey, value: bytes }],', 'expect: mine,'],
    ],
  },
  {
    name: 'a tombstone that a crash cut short stays',
    fault: 'a crash in the removal of a project left half a tombstone, which nobody wrote again',
    path: 'src/store/upkeep/tombstone.ts',
    replace: [
      [
        "if (error instanceof StowageError && error.code === 'corrupt_data') return false",
        "if (error instanceof StowageError && error.code === 'corrupt_data') return true",
      ],
    ],
  },
  {
    name: 'what a dead server committed waits for a restart',
    fault: 'an upload whose server died stayed invisible in part until some server was restarted',
    path: 'src/store/upkeep/pending-watch.ts',
    replace: [['const WAITING_MS_MAX = 60_000', 'const WAITING_MS_MAX = Infinity']],
  },
  {
    name: 'the commit of a pack does not look at the mark of its blob',
    fault: 'a server that slept through a sweep committed a pack whose blob was gone',
    path: COMMITTER,
    replace: [["const isBlob = record.content === 'blob'", 'const isBlob = record.packId.length === 0']],
  },
  {
    name: 'the mark of a blob goes with it',
    fault: 'a server that slept for longer than the mark stood committed a pack whose blob was gone',
    path: SWEEP,
    replace: [
      [
        'await this.#parts.records.commit({ put, expect: some.map(({ key, value }) => ({ key, value })) })',
        'await this.#parts.records.commit({ remove: put.map(({ key }) => key) })',
      ],
    ],
  },
  {
    name: 'a commit that lost its answer counts as refused',
    fault: 'a blob was removed after a commit that failed, though the commit had been made',
    path: COMMITTER,
    replace: [['if (await this.#isCommitted(pack)) return { ok: true }\n', '']],
    also: [
      {
        path: 'src/store/ingest/ingest.ts',
        replace: [
          [
            'if (error instanceof StowageError && REFUSED.has(error.code))',
            'if (error instanceof Error || REFUSED.size === 0)',
          ],
        ],
      },
    ],
  },
  {
    name: 'ids that were written once more for freed objects stay',
    fault: 'a server that slept while it applied a pack wrote records of objects that had been freed meanwhile',
    path: COMMITTER,
    replace: [['if (!isHere) stray.push', 'if (!isHere && ordinal < 0) stray.push']],
  },
  {
    name: 'plans that name freed objects serve on',
    fault: 'a download by an old plan sent objects that a collection had freed',
    path: DOUBTS,
    replace: [
      [
        'const unsure = wanted.without(owned)',
        'const { condemned = wanted } = pack.record\n      const unsure = wanted.without(wanted.without(condemned))',
      ],
    ],
  },
  {
    name: 'plans send what a collection that was cut off has freed',
    fault: 'a crash between freeing objects and noting that in their pack left a plan that sent the freed objects',
    path: TEXTS,
    replace: [['if (record?.textBytes !==', 'if (record === undefined) continue\n      if (record.textBytes !==']],
  },
  {
    name: 'what a plan takes from merged packs is not asked for',
    fault: 'a crash between a merge and the renewal of its plans left one that sent what was freed or replaced later',
    path: DOUBTS,
    replace: [['if (isRetired(pack.record, project.layout) && !(await', 'if (pack.record.retiredAt < 0 && !(await']],
  },
  {
    name: 'a pin does not revive what is condemned',
    fault: 'a pin was acknowledged, and a collection under way freed what it needed',
    path: 'src/store/records/change-objects.ts',
    replace: [
      [
        "record?.state === 'condemned' ? { ...record, state: 'live', epoch } : 'keep'",
        "record?.state === 'condemned' && epoch < 0 ? { ...record, state: 'live', epoch } : 'keep'",
      ],
    ],
  },
  {
    name: 'a pin whose closure loses a merged pack is damage',
    fault: 'packs went between finding the closure of a pin and looking at them, and the pin was refused as damaged',
    path: 'src/store/collect/revival.ts',
    replace: [['const isOutdated = project.layout !== before.layout && hasGone(error)', 'const isOutdated = false']],
  },
  {
    name: 'a walk that packs were moved away from does not begin again',
    fault: 'a download failed because packs were merged and dropped while it was chosen',
    path: 'src/store/graph-reader.ts',
    replace: [['const VIEWS_MAX = 3', 'const VIEWS_MAX = 1']],
  },
  {
    name: 'a download that meets the sweep of its project is damage',
    fault: 'a download of a project that was removed meanwhile reported that data is damaged',
    path: CATALOG,
    replace: [['  if (isRemoved(head, generation)) return removedWhileRead()\n', '']],
  },
  {
    name: 'a pack that went with its project is damage',
    fault: 'a pack of a removed project that could not be applied any more was reported as damaged',
    path: 'src/store/upkeep/recovery.ts',
    replace: [
      [
        'throw isRemoved(head, pack.generation) ? projectRemoved() : error',
        'throw isRemoved(head, -1) && pack.generation < 0 ? projectRemoved() : error',
      ],
    ],
  },
  {
    name: 'a reindex takes a full disk for damage',
    fault: 'a reindex told damage where the disk was full, and went on without the data',
    path: 'src/store/upkeep/finding.ts',
    replace: [["(error.isRetryable || error.code === 'storage_full')", 'error.isRetryable']],
  },
  {
    name: 'a tombstone that a crash cut short is damage',
    fault: 'a reindex, and later a check, told damage where a removal had been cut short',
    path: 'src/store/upkeep/tombstone.ts',
    replace: [
      [
        "return (await isCutShort(blobs, name, sizeBytes)) ? { ...finding, severity: 'note' } : finding",
        "return (await isCutShort(blobs, name, sizeBytes)) ? { ...finding, severity: 'damage' } : finding",
      ],
    ],
  },
  {
    name: 'the checksum of tables begins anew at an empty part',
    fault: 'a section with an empty table lost the checksum of its other tables',
    path: 'src/store/pack/pack-format.ts',
    replace: [
      [
        'for (const part of payload) if (part.length > 0) crc = crc32(part, crc)',
        'for (const part of payload) crc = crc32(part, crc)',
      ],
    ],
  },
  {
    name: 'a list of unreferenced objects is used again whatever becomes visible',
    fault: 'a list that was made while an upload was on its way named its objects for good, though a pin led to them',
    path: 'src/store/collect/unreferenced.ts',
    replace: [['const listing = pending.size > 0 ? await list()', 'const listing = pending.size < 0 ? await list()']],
  },
  {
    name: 'a late upload takes objects over though its pack is applied',
    fault:
      'a server that slept in the middle of an upload brought condemned objects again into a pack that was gone soon',
    path: 'src/store/ingest/take-over.ts',
    replace: [
      ['return [this.#record, ...this.#totals.expect]', 'return this.#totals.expect'],
      ['if (!areAsExpected(record, [this.#record])) throw', 'if (record.length === 0) throw'],
      ['found?.slice(0, 1)', 'found?.slice(0, 0)'],
      ['found?.slice(1)', 'found'],
    ],
  },
  {
    name: 'records of a pack that was merged stay when it was applied late',
    fault: 'a server that slept while it applied a pack left records of objects in it, though it had been merged',
    path: COMMITTER,
    replace: [['current?.retiredAt === 0 ? current : undefined', 'current?.retiredAt === 0 ? current : current']],
  },
  {
    name: 'a merge that goes on does not renew what its sources wait for',
    fault: 'a merge that was cut off for long removed its sources as soon as it took effect, below those who read them',
    path: 'src/store/compact/finish-merge.ts',
    replace: [['put.push(...changed, mark)', 'if (changed.length > 0) put.push(...changed, mark)']],
  },
  {
    name: 'usage is remembered whatever is being stored',
    fault: 'the usage of a project that was counted while an upload was being stored stayed as it was',
    path: 'src/store/usage/usage-cache.ts',
    replace: [['${layout} ${pending.join()} ', '${layout} ${pending.length < 0} ']],
  },
  {
    name: 'an export does not wait for packs that are not applied',
    fault: 'an export that began while an upload brought condemned objects again held them twice',
    path: 'src/store/object-pager.ts',
    replace: [['if (mark === undefined) continue', 'if (mark !== undefined) continue']],
  },
  {
    name: 'a collection goes on though another one began',
    fault: 'of two collections of a project one saw an object alive that the other condemned, and it was lost',
    path: 'src/store/collect/fence.ts',
    replace: [
      [
        'encodeCollection(key, randomId(environment))',
        "encodeCollection(key, randomId(environment).replace(/./g, '0'))",
      ],
    ],
  },
  {
    name: 'a commit that frees objects does not expect the totals',
    fault: 'totals were changed while objects were freed, which then took up the quota of their project for ever',
    path: 'src/store/records/lowered-totals.ts',
    replace: [['return this.#stored === undefined ? [] : [this.#stored.expectation]', 'return []']],
  },
  {
    name: 'a pin does not expect the epoch of its look',
    fault: 'a pin was committed after what it needs had been condemned and freed',
    path: 'src/store/records/pins.ts',
    replace: [['{ key, value: undefined }, epoch.expectation]', '{ key, value: undefined }]']],
  },
  {
    name: 'an export lacks what was merged when its packs are gone',
    fault: 'an export that took longer than a day lacked objects whose packs had been merged meanwhile',
    path: 'src/store/object-pager.ts',
    replace: [
      [
        'record.activeAt > layout && !(await this.#areThere(project, record.sources))',
        'record.activeAt < layout && !(await this.#areThere(project, record.sources))',
      ],
    ],
  },
  {
    name: 'an export looks behind its end as its project was before',
    fault: 'packs were merged and dropped in the middle of a page of an export, which then lacked their objects',
    path: 'src/store/object-pager.ts',
    replace: [['const now = await viewProject(this.#parts.records, project.projectId, signal)', 'const now = project']],
  },
  {
    name: 'a delta is based on an object that the client lacks',
    fault: 'an object that came after the client had taken its version was the base of a delta that it was sent',
    path: 'src/store/delta/delta-walk.ts',
    replace: [
      [
        'if (this.#held.get(older.sequence)?.has(older.ordinal) !== true) continue',
        'if (this.#held.size > 0 && older.ordinal < 0) continue',
      ],
    ],
  },
]
