import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { backupServer, exportToFile, type ProjectAddress, verifyFiles } from '../../src/archive/index.ts'
import { temporaryFolder } from '../support/folder.ts'
import { furnish, site } from './support.ts'

/*
 * Two exports into one file, or two backups into one folder, would write into the same partial files.
 */

interface Halted {
  readonly address: ProjectAddress
  /** Resolves when the first request has come, which waits. */
  readonly begun: Promise<void>
  readonly goOn: () => void
}

function halted(address: ProjectAddress): Halted {
  const [signs, begun] = [new EventEmitter(), new AbortController()]
  const goesOn = once(signs, 'go on')
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    begun.abort()
    await goesOn
    return (address.fetch as (url: string, init: RequestInit) => Promise<Response>)(url, init)
  }
  return {
    address: { ...address, fetch },
    begun: once(begun.signal, 'abort').then(() => undefined),
    goOn: () => void signs.emit('go on'),
  }
}

for (const [what, run, place] of [
  ['export', exportToFile, 'house.tar'],
  ['backup', backupServer, 'backup'],
] as const)
  test(`a second ${what} into the same place is refused while the first runs, and spoils nothing`, async (t) => {
    const folder = temporaryFolder(t)
    const path = join(folder, place)
    const source = site(t)
    await furnish(source)
    const slow = halted(source.address)
    const first = run(slow.address, path)
    await slow.begun
    await assert.rejects(run(source.address, path), {
      code: 'conflict',
      message: new RegExp(`^process ${process.pid} on .* is making the .*${place}"; wait until it ends`),
    })
    slow.goOn()
    await first
    const names = readdirSync(folder, { recursive: true }).map(String)
    const archives = names.filter((name) => name.endsWith('.tar'))
    await verifyFiles(archives.map((name) => join(folder, name)))
    assert.equal(archives.length, 1)
    assert.deepEqual(
      names.filter((name) => /lock|partial/.test(basename(name))),
      [],
    )
  })
