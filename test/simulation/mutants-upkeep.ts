import type { Edit, Mutant } from './mutant.ts'

const SWEEP = 'src/store/collect/sweep.ts'
const BEGIN = 'src/store/compact/begin-merge.ts'
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
  {
    name: 'young objects hold nothing below them',
    path: MARK,
    replace: [['return { fromRoots, kept: await marksOf(walk, memory) }', 'return { fromRoots, kept: fromRoots }']],
  },
  {
    name: 'a pack goes on owning what is condemned',
    path: 'src/store/collect/settled-record.ts',
    replace: [
      [
        'const owned = (record.owned ?? empty).without(toCondemn)',
        'const owned = (record.owned ?? empty).without(empty)',
      ],
    ],
  },
  {
    name: 'an upload takes what is condemned for held',
    path: 'src/store/ingest/admission.ts',
    replace: [["} else if (held?.state === 'live') {", '} else if (held !== undefined) {']],
  },
  {
    name: 'the record of a condemned object that comes again is kept',
    path: 'src/store/ingest/committer.ts',
    replace: [['if (condemned.length === 0) return held', 'if (condemned.length >= 0) return held']],
  },
  {
    name: 'what is condemned is freed though it was revived meanwhile',
    path: SWEEP,
    replace: [
      [
        "record.state === 'condemned' && epoch - record.epoch > undoEpochs ? undefined : 'keep'",
        "epoch - record.epoch > undoEpochs || record.state === 'live' ? undefined : 'keep'",
      ],
    ],
  },
  {
    name: 'objects change though others changed them meanwhile',
    path: 'src/store/records/change-objects.ts',
    replace: [
      [
        '  return chunk.map(({ key, before }) => ({ key, value: before }))',
        '  return chunk.slice(chunk.length).map(({ key, before }) => ({ key, value: before }))',
      ],
    ],
  },
  {
    name: 'what is freed stays in its pack for ever',
    path: 'src/store/records/held-objects.ts',
    replace: [
      [
        'if (owned === undefined) return Bitmap.empty(objects)',
        'if (owned === undefined || state === undefined) return Bitmap.full(objects)',
      ],
    ],
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
    replace: [['if (record.retiredAt !== 0) return', 'if (record.retiredAt >= 0) return']],
  },
  {
    name: 'a pack that lies inside its record is lost when it is retired',
    path: FINISH,
    replace: [["['beside', [{ key, value: encodeRetiredContent(key, content) }]]", "['beside', []]"]],
  },
  {
    name: 'the content of a retired pack stays for ever',
    path: 'src/store/compact/drop-retired.ts',
    replace: [['(pack) => [pack.key, ...pack.contentKeys]', '(pack) => [pack.key]']],
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
        'return `${generation}\\0${sequence}\\0${layout}\\0${projectId}`',
        'return `${generation}\\0${sequence}\\0${projectId}`',
      ],
    ],
  },
  {
    name: 'a plan is kept whatever is merged',
    path: 'src/store/plan/plan-layout.ts',
    replace: [['if (plan.layout >= project.layout) return true', 'if (plan.layout >= 0) return true']],
  },
  {
    name: 'two merges of a project go on at once',
    path: BEGIN,
    replace: [['      { key: mark, value: undefined },\n      { key: swept', '      { key: swept']],
  },
  {
    name: 'a merge begins though objects moved meanwhile',
    path: BEGIN,
    replace: [[' || head.layout !== layout) return false', ') return false']],
  },
]

const ADMISSION = 'src/store/compact/moved-admission.ts'
const BASE_OF_BASE: Edit['replace'] = [
  [
    'this.#remember({ ordinal, sign, line, depth: base.depth + 1 }, base)',
    'this.#remember({ ordinal: base.ordinal, sign, line, depth: base.depth + 1 }, base)',
  ],
]

/** Faults in deltas inside packs: older versions of long objects cannot be read, or are others. */
export const IN_PACKED_DELTAS: readonly Mutant[] = [
  { name: 'a delta in a pack is based on the base of its base', path: ADMISSION, replace: BASE_OF_BASE },
  {
    name: 'a delta in a pack may make another text',
    path: ADMISSION,
    replace: BASE_OF_BASE,
    also: [
      {
        path: 'src/store/pack/delta-block.ts',
        replace: [
          [
            'return applyDelta(parseDelta(json), baseLine, rawBytes, crc32)',
            'const delta = parseDelta(json)\n    return applyDelta(delta, baseLine, rawBytes, () => delta.crc32)',
          ],
        ],
      },
      {
        path: 'src/store/pack/inflated-segments.ts',
        replace: [
          [
            'if (segments[0].placed === undefined && crc32(raw) !== rawCrc32)',
            'if (segments[0].placed === undefined && raw.length === 0 && rawCrc32 > 0)',
          ],
        ],
      },
    ],
  },
  {
    name: 'deltas in a pack are based on any number of others',
    path: ADMISSION,
    replace: [['likely.depth === DELTA_DEPTH_MAX', 'likely.depth === Infinity']],
  },
]
