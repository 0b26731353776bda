import type { Mutant } from './mutant.ts'

const MARK = 'src/store/collect/mark.ts'
const FINISH = 'src/store/compact/finish-merge.ts'

/** Faults in collecting: what roots or young objects lead to may go, or what nobody needs stays. */
export const IN_COLLECTING: readonly Mutant[] = [
  {
    name: 'a collection has no grace',
    path: MARK,
    replace: [['return epoch - writtenAt <= olderThanEpochs', 'return epoch - writtenAt < -olderThanEpochs']],
  },
  {
    name: 'a collection sees no roots',
    path: MARK,
    replace: [['if (location !== undefined) places.push(location)', 'if (location === undefined) places.length = 0']],
  },
  {
    name: 'what is condemned is freed by the next collection',
    path: 'src/store/collect/collector.ts',
    replace: [['undoEpochs: atLeastOne(options.undoEpochs),', 'undoEpochs: -1,']],
  },
]

/** Faults in merging packs: objects may get lost, or be found where they are not. */
export const IN_COMPACTING: readonly Mutant[] = [
  {
    name: 'a merge moves no object',
    path: FINISH,
    replace: [
      [
        "if (object === undefined || !sources.has(object.sequence)) return 'keep'",
        "if (object === undefined || sources.size > 0) return 'keep'",
      ],
    ],
  },
  {
    name: 'a merge takes effect in the layout before',
    path: FINISH,
    replace: [['{ ...head, layout: merge.layout }', '{ ...head, layout: merge.layout - 1 }']],
  },
  {
    name: 'objects move before their merge takes effect',
    path: FINISH,
    replace: [['const previous = { fromLayout: merge.layout,', 'const previous = { fromLayout: 0,']],
  },
  {
    name: 'the packs that were merged are not retired',
    path: FINISH,
    replace: [['if (record.retiredAt !== 0) continue', 'if (record.retiredAt >= 0) continue']],
  },
  {
    name: 'condemned objects are left out of merges',
    path: 'src/store/records/held-objects.ts',
    replace: [
      ['if (condemned === undefined || condemned.count === 0) return owned', 'if (owned !== undefined) return owned'],
    ],
  },
  {
    name: 'the blobs of merged packs go at once',
    path: 'src/store/upkeep/blob-sweep.ts',
    replace: [['if (since + this.#graceEpochs > epoch) continue', 'if (since > epoch) continue']],
  },
  {
    name: 'packs are remembered whatever is merged',
    path: 'src/store/records/pack-catalog.ts',
    replace: [
      [
        'const cacheKey = `${generation}\\0${sequence}\\0${layout}\\0${projectId}`',
        'const cacheKey = `${generation}\\0${sequence}\\0${projectId}`',
      ],
    ],
  },
]

/** Mends of durability that the history of the core has, each taken out again. */
export const MENDS_TAKEN_OUT: readonly Mutant[] = [
  {
    name: 'a walk is shared while an upload writes its ids',
    path: 'src/store/closure/shared-walks.ts',
    replace: [['if (pending !== undefined) return walk(signal)\n', '']],
  },
  {
    name: 'ids that were written behind a sweep stay',
    path: 'src/store/ingest/committer.ts',
    replace: [['await records.insertMany([garbageEntry(pack.projectId, pack.generation)])\n', '']],
  },
  {
    name: 'a plan that was made while its project was removed stays',
    path: 'src/store/plan/plan-cache.ts',
    replace: [
      [
        'if (await this.#stored.dropIfRemoved(project, { key, value, blobName }))',
        'if ((await this.#stored.dropIfRemoved(project, { key, value, blobName }).catch(() => false)) && key.length === 0)',
      ],
    ],
  },
]
