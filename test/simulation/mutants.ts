import type { Mutant } from './mutant.ts'
import { MENDS_TAKEN_OUT } from './mutants-mends.ts'
import { IN_CHOOSING, IN_QUOTAS } from './mutants-space.ts'
import { IN_COLLECTING, IN_COMPACTING, IN_PACKED_DELTAS } from './mutants-upkeep.ts'

const COMMITTER = 'src/store/ingest/committer.ts'
const INGEST = 'src/store/ingest/ingest.ts'
const STORE = 'src/store/pack-store.ts'
const READER = 'src/store/graph-reader.ts'
const PLANS = 'src/store/plan/plan-cache.ts'
const SWEEP = 'src/store/upkeep/blob-sweep.ts'
const REMOVAL = 'src/store/upkeep/removal.ts'
const PROJECTS = 'src/store/records/projects.ts'
const CATALOG = 'src/store/records/pack-catalog.ts'

/** Faults in writing: what is acknowledged may be lost, or be there in part. */
const IN_WRITING: readonly Mutant[] = [
  {
    name: 'ids are not awaited before the answer',
    path: COMMITTER,
    replace: [
      [
        'const values = await this.#parts.records.insertMany(own.map(({ entry }) => entry))',
        'void this.#parts.records.insertMany(own.map(({ entry }) => entry)).catch(() => undefined)\n    const values: (Uint8Array | undefined)[] = own.map(() => undefined)',
      ],
    ],
  },
  {
    name: 'the answer is sent before the pack is applied',
    path: INGEST,
    replace: [
      [
        'const applied = await committer.apply(pack, tables).catch((error: unknown) => {\n      this.#parts.onUnapplied(pack)\n      throw error\n    })',
        'const applied = { record: pack.record, differing: 0, differingIds: [] as string[] }\n    void committer.apply(pack, tables).catch(() => this.#parts.onUnapplied(pack))',
      ],
    ],
  },
  {
    name: 'packs that a crash left pending are not applied',
    path: STORE,
    replace: [['await applyPending(parts, (error) => this.#reportUnlessClosing(error))', 'void applyPending']],
  },
  {
    name: 'a commit leaves no pending mark',
    path: COMMITTER,
    replace: [['        pendingEntry(projectId, generation, sequence),\n', '']],
  },
  {
    name: 'a commit expects nothing',
    path: COMMITTER,
    replace: [
      [
        'const expect = isBlob ? [...change.expect, { key: mark, value: undefined }] : change.expect',
        'const expect = isBlob ? [{ key: mark, value: undefined }] : []',
      ],
    ],
  },
  {
    name: 'a commit that lost its expectation counts as made',
    path: COMMITTER,
    replace: [
      [
        'if (result.ok) return { projectId, generation, sequence, record }',
        'if (result) return { projectId, generation, sequence, record }',
      ],
    ],
  },
  {
    name: 'the sequence does not advance',
    path: COMMITTER,
    replace: [['sequence: sequence + 1, removed: false', 'sequence, removed: false']],
  },
  {
    name: 'the last text wins',
    path: COMMITTER,
    replace: [
      [
        'const values = await this.#parts.records.insertMany(own.map(({ entry }) => entry))',
        'const values: (Uint8Array | undefined)[] = []\n    for (const { entry } of own) {\n      await this.#parts.records.commit({ put: [entry] })\n      values.push(undefined)\n    }',
      ],
    ],
  },
  {
    name: 'a pack owns what another pack holds',
    path: COMMITTER,
    replace: [['      wrote.owned.delete(ordinal)\n', '']],
  },
  {
    name: 'the last id of each chunk is not written',
    path: COMMITTER,
    replace: [
      [
        'objectEntries(pack, tables, first, Math.min(tables.objects, first + LOOKUP_KEYS))',
        'objectEntries(pack, tables, first, Math.min(tables.objects, first + LOOKUP_KEYS - 1))',
      ],
    ],
  },
  {
    name: 'a body that ends in the middle is accepted',
    path: 'src/decode/decode-upload.ts',
    replace: [['    splitter.end()\n', '']],
  },
  {
    name: 'a delta is applied to a base with another text',
    path: 'src/operations/resolve-deltas.ts',
    replace: [
      [
        'applyDelta(delta, base, objectBytesMax, crc32)',
        'applyDelta(delta, base.fill(0x61, 20, 21), objectBytesMax, () => delta.crc32)',
      ],
    ],
  },
]

/** Faults in removing and in what a sweep takes. */
const IN_REMOVING: readonly Mutant[] = [
  {
    name: 'a removal that lost its expectation counts as made',
    path: REMOVAL,
    replace: [['if (!result.ok) {\n      const [found]', 'if (!result) {\n      const [found]']],
  },
  {
    name: 'a removed project is filled again in the same generation',
    path: PROJECTS,
    replace: [['return head.removed ? head.generation + 1 : head.generation', 'return head.generation']],
  },
  {
    name: 'an upload goes into the generation that was removed meanwhile',
    path: COMMITTER,
    replace: [['      if (writingGeneration(head) !== generation) throw projectRemoved()\n', '']],
  },
  {
    name: 'a sweep takes the objects of every generation',
    path: REMOVAL,
    replace: [
      [
        "await sweepRecords(records, bounds('object'), signal)",
        "await sweepRecords(records, keyBounds('object', projectId), signal)",
      ],
    ],
  },
  {
    name: 'blobs that no record names are not kept for a day',
    path: SWEEP,
    replace: [
      ['if (nowMs - sinceMs >= UNNAMED_MS)', 'if (nowMs >= 0)'],
      ['if (since + this.#graceEpochs > epoch) continue\n', ''],
      ['if (nowMs - this.#listedAtMs < UNNAMED_MS) return false\n', ''],
    ],
  },
  {
    name: 'the sweep of blobs does not look at packs',
    path: SWEEP,
    replace: [
      [
        'named.add(packBlobName(keyParts(key)[0], decodePackRecord(key, value).packId))',
        'decodePackRecord(key, value)',
      ],
    ],
  },
  {
    name: 'packs are remembered without their generation',
    path: CATALOG,
    replace: [
      [
        'return `${generation}\\0${sequence}\\0${layout}\\0${projectId}`',
        'return `${sequence}\\0${layout}\\0${projectId}`',
      ],
    ],
  },
]

/** Faults in reading: an answer is not what is held. */
const IN_READING: readonly Mutant[] = [
  {
    name: 'a plan of an incomplete closure is kept for ever',
    path: PLANS,
    replace: [
      [
        'if (missing.size + absentClaims.size === 0 || plan.checkedSequence === project.sequence) return true',
        'return true',
      ],
    ],
  },
  {
    name: 'plans are found without their generation',
    path: PLANS,
    replace: [
      [
        'const key = planKey(project.projectId, project.generation, rootId, variant)',
        'const key = planKey(project.projectId, 1, rootId, variant)',
      ],
      [
        'const key = planKey(projectId, generation, rootId, variant)',
        'const key = planKey(projectId, generation && 1, rootId, variant)',
      ],
    ],
  },
  { name: 'claims are not followed', path: 'src/store/closure/closure-walk.ts', replace: [['kind < 2', 'kind < 1']] },
  {
    name: 'a bitmap is off by one',
    path: 'src/store/bytes/bitmap.ts',
    replace: [
      [
        'if (size & 7) bytes[bytes.length - 1] = (1 << (size & 7)) - 1',
        'if (size & 7) bytes[bytes.length - 1] = (1 << ((size & 7) - 1)) - 1',
      ],
    ],
  },
  {
    name: 'what a client has is subtracted whatever its digest says',
    path: READER,
    replace: [["return closure.digest === digest ? 'subtracted' : 'digest-mismatch'", "return 'subtracted'"]],
  },
  {
    name: 'what a client has is subtracted though parts of it came later',
    path: 'src/store/closure/closure.ts',
    replace: [
      [
        'return missing.size === 0 && (last === undefined || last.sequence <= root.sequence)',
        'return missing.size === 0 || last === root',
      ],
    ],
  },
  {
    name: 'what was sent as a delta is sent once more',
    path: 'src/store/delta/delta-walk.ts',
    replace: [['        wanted.delete(newer.ordinal)\n', '']],
  },
  {
    name: 'what is absent is answered as held',
    path: READER,
    replace: [
      [
        "held[first + i] = record?.state === 'live' ? 1 : 0",
        "held[first + i] = record?.state === 'live' || i === 0 ? 1 : 0",
      ],
    ],
  },
  {
    name: 'inflated blocks are not compared with their checksum',
    path: 'src/store/pack/inflated-segments.ts',
    replace: [
      ['if (segments[0].placed === undefined && crc32(raw) !== rawCrc32)', 'if (raw.length === 0 && rawCrc32 > 0)'],
    ],
  },
]

/** Faults in noticing what is damaged. */
const IN_NOTICING: readonly Mutant[] = [
  {
    name: 'records are not compared with their checksum',
    path: 'src/store/records/seal.ts',
    replace: [
      [
        'return stored === crc32(body, crc32(key)) ? value[0] : undefined',
        'return stored === -1 ? undefined : value[0]',
      ],
    ],
  },
]

/** Each is found by some seed below 1,000: the oracle would notice if the core had that fault. */
export const MUTANTS: readonly Mutant[] = [
  ...IN_WRITING,
  ...IN_REMOVING,
  ...IN_READING,
  ...IN_NOTICING,
  ...IN_COLLECTING,
  ...IN_COMPACTING,
  ...IN_PACKED_DELTAS,
  ...IN_CHOOSING,
  ...IN_QUOTAS,
  ...MENDS_TAKEN_OUT,
]
