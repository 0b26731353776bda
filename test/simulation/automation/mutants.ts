import type { Mutant } from '../mutant.ts'

const RUN_CHANGES = 'src/automation-server/domain/run-changes.ts'
const DELETION = 'src/automation-server/domain/deletion.ts'
const VERSIONS = 'src/automation-server/domain/versions.ts'

/** Faults in models, versions and runs of automation. */
export const AUTOMATION_MUTANTS: readonly Mutant[] = [
  {
    name: 'a change of a run does not expect the record as it was read',
    workload: 'automation',
    path: RUN_CHANGES,
    replace: [['expect: [expectSame(stored), ...(change.expect ?? [])]', 'expect: [...(change.expect ?? [])]']],
  },
  {
    name: 'a lease is over at once',
    workload: 'automation',
    path: 'src/automation-server/runner/run-sightings.ts',
    replace: [["nowMs - beatSinceMs >= times.leaseMs ? 'lease'", "nowMs >= beatSinceMs ? 'lease'"]],
  },
  {
    name: 'a purge does not look at the restore',
    workload: 'automation',
    path: 'src/automation-server/upkeep/purge-deleted.ts',
    replace: [
      ['if (model.value.deletion?.epoch !== epoch) return true', 'if (model.value.deletion?.epoch === -1) return true'],
      ['if (version?.value.deletion?.epoch !== epoch) return true', 'if (version === undefined) return true'],
    ],
    also: [
      {
        path: DELETION,
        replace: [
          ['        remove: [deletedKey(scope, stored.value.deletion.epoch, modelId)],\n', ''],
          ['        remove: [deletedKey(scope, deletion.epoch, modelId, versionId)],\n', ''],
        ],
      },
    ],
  },
  {
    name: 'deleted versions hold no objects',
    workload: 'automation',
    path: VERSIONS,
    replace: [
      [
        'yield entries.map(({ key, value }) => {\n        const { id, modelId, rootObjectId } = decodeRecord<VersionRecord>(key, value)\n        return {',
        'yield entries.flatMap(({ key, value }) => {\n        const { id, modelId, rootObjectId, deletedAt } = decodeRecord<VersionRecord>(key, value)\n        if (deletedAt !== null) return []\n        return {',
      ],
    ],
  },
  {
    name: 'a version leaves no mark for its automations',
    workload: 'automation',
    path: VERSIONS,
    replace: [
      ['      store.entry(mark, { modelId: record.modelId, versionId: record.id } satisfies TriggerMark),\n', ''],
    ],
  },
  {
    name: 'a version is checked before its first try alone',
    workload: 'automation',
    path: VERSIONS,
    replace: [
      [
        '    await models.getLive(projectId, modelId)\n    const record',
        '    await models.getLive(projectId, modelId)\n    await this.#checkComplete(projectId, wanted.rootObjectId, options.signal)\n    const record',
      ],
      ['    await this.#checkComplete(projectId, rootObjectId, signal)\n    return epoch', '    return epoch'],
    ],
  },
  {
    name: 'a version does not expect the epoch of its check',
    workload: 'automation',
    path: VERSIONS,
    replace: [['return epoch === undefined ? [] : [epoch.expectation]', 'return epoch === undefined ? [] : []']],
  },
  {
    name: 'a version does not revive what is condemned',
    workload: 'automation',
    path: VERSIONS,
    replace: [
      [
        'const epoch = await this.#parts.graphs.collector?.revive(projectId, rootObjectId, { signal })',
        "const epoch = await this.#parts.graphs.collector?.revive(projectId, '', { signal })",
      ],
    ],
  },
  {
    name: 'a report of a lost attempt passes for the repetition of one of the next',
    workload: 'automation',
    path: 'src/automation-server/domain/reports.ts',
    replace: [['    checkAttempt(stored.value, attempt)\n    if (isTaken', '    if (isTaken']],
  },
  {
    name: 'a lost run that has reported is started again',
    workload: 'automation',
    path: 'src/automation-server/domain/run-record.ts',
    replace: [
      ["status === 'pending' && sequence === 0 && attempt", "status === 'pending' && sequence >= 0 && attempt"],
    ],
  },
  {
    name: 'a repeated report is stored again',
    workload: 'automation',
    path: 'src/automation-server/domain/reports.ts',
    replace: [
      ['if (sequence <= run.sequence && (status === undefined || !isFinal(status))) return true\n', ''],
      [
        "  if (sequence <= run.sequence)\n    throw new StowageError(\n      'conflict',\n      `a report with the sequence ${sequence} was accepted before, and its status was not ${status}`,\n    )\n",
        '',
      ],
    ],
  },
]
