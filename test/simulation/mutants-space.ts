import type { Mutant } from './mutant.ts'

const COMMITTER = 'src/store/ingest/committer.ts'
const CHOSEN = 'src/store/collect/chosen.ts'
const UNREFERENCED = 'src/store/collect/unreferenced.ts'

/** Faults of quotas: projects exceed them, or are refused what they may hold. */
export const IN_QUOTAS: readonly Mutant[] = [
  {
    name: 'the quota is compared with what was held when the upload began',
    path: COMMITTER,
    replace: [['quota?.check(added, totals)', 'quota?.check(added)']],
  },
  {
    name: 'a commit does not expect the totals',
    path: COMMITTER,
    // Only totals that change between the look at them and the commit tell, and one seed in two thousand has that.
    seeds: 10_000,
    replace: [
      [
        'const expect = [{ key, value: bytes }, expectation, { key: recordKey, value: undefined }]',
        'const expect = [{ key, value: bytes }, { key: recordKey, value: undefined }]',
      ],
      [
        'const [headBytes, totalsBytes] = await afterLostTry(this.#parts, { expect, conflicts: result.conflicts, tries })\n      read = await readHeadAndTotals(this.#parts, { projectId, generation }, [headBytes, totalsBytes])',
        'await afterLostTry(this.#parts, { expect, conflicts: result.conflicts, tries })\n      read = await readHeadAndTotals(this.#parts, { projectId, generation })',
      ],
    ],
  },
  {
    name: 'an upload that fails keeps what it reserved',
    path: 'src/store/ingest/ingest.ts',
    replace: [
      [
        '    try {\n      return await this.#put(projectId, batches, { ...options, quota })\n    } finally {\n      quota?.settle()\n    }',
        '    const stored = await this.#put(projectId, batches, { ...options, quota })\n    quota?.settle()\n    return stored',
      ],
    ],
  },
  {
    name: 'what another pack holds counts twice',
    path: COMMITTER,
    replace: [
      [
        'const foreign = foreignTotals(applied, wrote.tables)',
        'const foreign = { ...foreignTotals(applied, wrote.tables), objects: 0 }',
      ],
    ],
  },
  {
    name: 'what is freed goes on counting',
    path: 'src/store/collect/sweep.ts',
    replace: [['put: (changes) => totals.put(changes),', 'put: () => [],']],
  },
  {
    name: 'the last that fits is refused',
    path: 'src/store/ingest/quotas.ts',
    replace: [
      ['if (max !== undefined && totals[measure] > max)', 'if (max !== undefined && totals[measure] > max - 1)'],
    ],
  },
]

/** Faults in condemning chosen objects and in listing those that no root leads to. */
export const IN_CHOOSING: readonly Mutant[] = [
  {
    name: 'chosen objects go though a root leads to them',
    path: CHOSEN,
    replace: [['    await reachRoots(parts, project, walk, roots, signal)\n', '']],
  },
  {
    name: 'chosen objects go though a young object leads to them',
    path: CHOSEN,
    replace: [['(!chosen.has(ordinal) || isYoung(object.epoch, aging)),', '!chosen.has(ordinal),']],
  },
  {
    name: 'chosen objects go though another object leads to them',
    path: CHOSEN,
    replace: [['      await walk.reach(placesIn(sequence, membersOf(owned.without(chosen))))\n', '']],
  },
  {
    name: 'an undo leaves what no root ever led to',
    path: 'src/store/collect/revival.ts',
    replace: [
      [
        'if (record.condemned === undefined || record.condemned.count === 0) continue',
        'if (record.condemned === undefined || (record.reached?.count ?? 0) === 0) continue',
      ],
    ],
  },
  {
    name: 'a list of unreferenced objects does not look at roots',
    path: UNREFERENCED,
    replace: [['        await reachRoots(this.#parts, project, walk, roots, signal)\n', '']],
  },
]
