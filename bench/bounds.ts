import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bound } from './bounds/bound.ts'
import { gzippedArray } from './bounds/array.ts'
import { clients } from './bounds/clients.ts'
import { delta } from './bounds/delta.ts'
import { lookUps } from './bounds/look-ups.ts'
import { restart } from './bounds/restart.ts'
import { slowReaders } from './bounds/slow-readers.ts'
import { unplanned } from './bounds/unplanned.ts'
import { blockUploads, gzippedUploads } from './bounds/uploads.ts'
import { PROFILES, type ProfileName } from './model/profiles.ts'
import { countOf, orUsage, readOptions } from './options.ts'
import { build, exitOnSignals } from './server.ts'

/*
 * `npm run bench:bounds`: how fast rows of the benchmark can be at most on this machine. Most compare processor times, so
 * other programs on the machine matter little; restarts and slow readers are also compared with nginx. Linux only.
 */

const ROWS: Readonly<Record<string, Bound>> = {
  upload: gzippedUploads,
  blocks: blockUploads,
  array: gzippedArray,
  delta,
  'look-ups': lookUps,
  unplanned,
  restart,
  clients,
  'slow-readers': slowReaders,
}
const USAGE = `npm run bench:bounds -- [--rows ${Object.keys(ROWS).join(',')}] [--profile geometry|building] [--objects N] [--rounds N] [--folder PATH]`
const chosen = readOptions(USAGE, {
  rows: { type: 'string', default: Object.keys(ROWS).join(',') },
  profile: { type: 'string', default: 'geometry' },
  objects: { type: 'string' },
  rounds: { type: 'string', default: '7' },
  folder: { type: 'string', default: tmpdir() },
})
const names = orUsage(USAGE, () => chosen.rows.split(',').map((name) => oneOf('rows', name, ROWS)))
const profile = orUsage(USAGE, () => oneOf('profile', chosen.profile, PROFILES) as ProfileName)
const objects = orUsage(USAGE, () => (chosen.objects === undefined ? undefined : countOf('objects', chosen.objects)))
const rounds = orUsage(USAGE, () => countOf('rounds', chosen.rounds))

exitOnSignals()
const scratch = mkdtempSync(join(chosen.folder, 'stowage-bounds-'))
// nginx reads a file in it as another user.
chmodSync(scratch, 0o755)
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
build()
for (const name of names) {
  const folder = join(scratch, name)
  mkdirSync(folder)
  await ROWS[name]({ profile, objects, rounds, folder })
  rmSync(folder, { recursive: true, force: true })
}

function oneOf(option: string, name: string, known: Readonly<Record<string, unknown>>): string {
  if (Object.hasOwn(known, name)) return name
  throw new RangeError(`--${option} has "${name}"; it must be ${Object.keys(known).join(' or ')}`)
}
