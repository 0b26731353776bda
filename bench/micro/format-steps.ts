import { crc32Combine } from '../../src/compression/crc32-combine.ts'
import { REAL_ENVIRONMENT } from '../../src/environment.ts'
import { IdSet } from '../../src/object/id-set.ts'
import {
  decodePlanTables,
  encodePlanTables,
  planDigest,
  PlanRowList,
  type PlanTables,
  totalsOf,
} from '../../src/store/plan/plan-format.ts'
import { decodeObjectRecord, encodeObjectRecord, type ObjectRecord } from '../../src/store/records/object-record.ts'
import type { Input } from './input.ts'
import type { Step } from './steps.ts'

/** A plan of this many rows is that of a model of a million objects. */
const PLAN_ROWS = 50_000
const RECORDS = 10_000
const COMBINATIONS = 10_000

/** Steps that read and write the formats of the store. */
export function createFormatSteps({ fragments }: Input): readonly Step[] {
  const tables = planOf(fragments)
  const keys = Array.from({ length: RECORDS }, (_, at) => Buffer.from(`o/project/0/${at}`))
  return [
    {
      name: 'combine CRC-32',
      amount: COMBINATIONS,
      unit: 'combinations/s',
      run: async () => {
        let crc = 0
        for (let at = 0; at < COMBINATIONS; at++) {
          const fragment = fragments[at % fragments.length]
          crc = crc32Combine(crc, fragment.crc32, fragment.rawBytes)
        }
        await Promise.resolve(crc)
      },
    },
    {
      name: 'plan, encode and decode',
      amount: PLAN_ROWS,
      unit: 'rows/s',
      run: async () => {
        await decodePlanTables(await encodePlanTables(tables, REAL_ENVIRONMENT), REAL_ENVIRONMENT)
      },
    },
    {
      name: 'plan, totals and digest',
      amount: PLAN_ROWS,
      unit: 'rows/s',
      run: async () => {
        totalsOf(tables.rows)
        await Promise.resolve(planDigest(tables.rows))
      },
    },
    {
      name: 'object records, encode and decode',
      amount: RECORDS,
      unit: 'records/s',
      run: async () => {
        for (const [at, key] of keys.entries()) decodeObjectRecord(key, encodeObjectRecord(key, recordOf(at)))
        await Promise.resolve()
      },
    },
  ]
}

function planOf(fragments: Input['fragments']): PlanTables {
  const rows = new PlanRowList()
  for (let row = 0, start = 0; row < PLAN_ROWS; row++) {
    const { deflated, rawBytes, crc32 } = fragments[row % fragments.length]
    const end = start + deflated.length
    rows.push(0, { start, end, rawBytes, rawCrc32: crc32, storedCrc32: crc32, objects: 12, idBytes: 384 })
    start = end % 1_000_000_000
  }
  return {
    rows: rows.followedBy(new PlanRowList()),
    packs: [{ sequence: 1, packId: '0'.repeat(32), isInline: false }],
    closureDigest: '0'.repeat(32),
    closure: undefined,
    missing: new IdSet(),
    absentClaims: new IdSet(),
  }
}

function recordOf(at: number): ObjectRecord {
  return {
    state: 'live',
    epoch: 1,
    sequence: 1,
    ordinal: at,
    blockStart: at * 16_384,
    blockStoredBytes: 6_000,
    blockRawBytes: 16_384,
    lineStart: 512,
    textBytes: 1_400,
    textCrc32: at,
  }
}
