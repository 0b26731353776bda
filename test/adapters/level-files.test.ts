import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { crc32c } from '../../adapters/level/crc32c.ts'
import { closeDatabase, openRecordsDatabase } from '../../adapters/level/database.ts'
import { scanLog } from '../../adapters/level/log-file.ts'
import { tableDamage } from '../../adapters/level/table-file.ts'
import { verifyDatabase } from '../../adapters/level/verify.ts'
import { temporaryFolder } from '../support/folder.ts'

/* LevelDB's files as it writes them, and what may be wrong with them. */

const scratch = temporaryFolder()
const closed = join(scratch, 'closed')
const crashed = join(scratch, 'crashed')

before(async () => {
  const first = await openRecordsDatabase(closed, { createIfMissing: true })
  for (let batch = 0; batch < 20; batch++) await first.database.batch(entries(batch, 30), { sync: true })
  await closeDatabase(first)
  const second = await openRecordsDatabase(closed, { createIfMissing: false })
  await second.database.batch(entries(20, 1_500), { sync: true })
  for (let batch = 21; batch < 25; batch++) await second.database.batch(entries(batch, 5), { sync: true })
  cpSync(closed, crashed, { recursive: true })
  rmSync(join(crashed, 'lengths'))
  await closeDatabase(second)
})

function entries(batch: number, count: number): { type: 'put'; key: Uint8Array; value: Uint8Array }[] {
  return Array.from({ length: count }, (_, at) => ({
    type: 'put',
    key: Buffer.from(`${batch} ${at}`),
    value: Buffer.from(`value ${batch} ${at} `.repeat(3)),
  }))
}

function fileOf(folder: string, ending: RegExp): string {
  return join(folder, readdirSync(folder).find((name) => ending.test(name)) ?? 'none')
}

/** A copy of a database in which one file is changed. */
function changed(folder: string, ending: RegExp, change: (path: string) => void): string {
  const copy = mkdtempSync(join(scratch, 'copy-'))
  cpSync(folder, copy, { recursive: true })
  change(fileOf(copy, ending))
  return copy
}

test('CRC-32C matches the examples in RFC 3720', () => {
  assert.equal(crc32c(Buffer.alloc(32)), 0x8a91_36aa)
  assert.equal(crc32c(Buffer.alloc(32, 0xff)), 0x62a8_ab43)
  assert.equal(crc32c(Buffer.from(Array.from({ length: 32 }, (_, at) => at))), 0x46dd_794e)
  assert.equal(crc32c(Buffer.from('123456789')), 0xe306_9283)
})

test('a log with records of many blocks detects any flipped bit', () => {
  const log = readFileSync(fileOf(closed, /\.log$/))
  const whole = scanLog(log)
  assert.ok(log.length > 2 * 32_768)
  assert.deepEqual([whole.records.length, whole.wholeBytes, whole.isDamaged], [5, log.length, false])
  const lastAt = scanLog(log.subarray(0, -1)).wholeBytes
  for (let at = 0; at < log.length; at += 997) {
    const flipped = Buffer.from(log)
    flipped[at] ^= 0x10
    const scanned = scanLog(flipped)
    assert.ok(scanned.isDamaged, `byte ${at}`)
    assert.equal(scanned.goesOn, at < lastAt, `byte ${at}`)
  }
})

test('a table detects any flipped bit and any wrong length', () => {
  const table = readFileSync(fileOf(closed, /\.ldb$/))
  assert.equal(tableDamage(table, table.length), undefined)
  const step = 13
  for (let bit = 0; bit < table.length * 8; bit += bit > (table.length - 64) * 8 ? 1 : step * 8 + 1) {
    const flipped = Buffer.from(table)
    flipped[bit >> 3] ^= 1 << (bit & 7)
    assert.ok(tableDamage(flipped, table.length), `bit ${bit}`)
  }
  assert.match(tableDamage(table.subarray(1), table.length) ?? '', /instead of/)
})

test('a file cut short by a crash is not damage, but a closed file must be complete', async () => {
  await verifyDatabase(closed)
  await verifyDatabase(crashed)
  const cut = (path: string): void => truncateSync(path, readFileSync(path).length - 20)
  const zeroEnd = (path: string): void => {
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0, bytes.length - 20))
  }
  for (const change of [cut, zeroEnd]) {
    await verifyDatabase(changed(crashed, /\.log$/, change))
    await assert.rejects(
      verifyDatabase(changed(closed, /\.log$/, change)),
      /\.log is damaged: only \d+ of the \d+ bytes/,
    )
  }
})

test('damage in the middle of a file is reported even after a crash', async () => {
  const flip = (path: string): void => {
    const bytes = readFileSync(path)
    bytes[1_000] ^= 1
    writeFileSync(path, bytes)
  }
  await assert.rejects(verifyDatabase(changed(crashed, /\.log$/, flip)), /is not the last one/)
  await assert.rejects(verifyDatabase(changed(crashed, /\.ldb$/, flip)), /does not match its CRC-32C/)
})

test('a damaged record of lengths is ignored', async () => {
  await verifyDatabase(
    changed(closed, /^lengths$/, (path) => writeFileSync(path, readFileSync(path, 'utf8').replace(/\d/, '9'))),
  )
})
