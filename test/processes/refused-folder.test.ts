import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { issueToken } from '../../src/access/token-store.ts'
import { describeFailure, exitCodeOf, FindingsError } from '../../src/cli/common/exit.ts'
import { createProgram } from '../../src/cli/program.ts'
import { startServer, stowage } from '../cli/command.ts'
import { fillFolder } from '../crash/damaged-folder.ts'
import { temporaryFolder } from '../support/folder.ts'

/* What the command does with a folder in which something is missing, or that another process holds: it says why, and touches nothing. */

const scratch = temporaryFolder()
const whole = join(scratch, 'whole')

before(async () => {
  await fillFolder('filesystem', whole, join(scratch, 'crashed'))
  await issueToken(folderCredentials(whole), {
    projects: new Map([['site', 'write']]),
    subject: 'test',
    ttlSeconds: 60,
  })
})

/** Every name, and every byte of every file. */
function fingerprint(folder: string): string {
  const hash = createHash('sha256')
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }).sort((a, b) =>
    join(a.parentPath, a.name) < join(b.parentPath, b.name) ? -1 : 1,
  )) {
    const path = join(entry.parentPath, entry.name)
    hash.update(`${path.slice(folder.length)}\0`)
    if (entry.isFile()) hash.update(readFileSync(path)).update('\0')
  }
  return hash.digest('hex')
}

function newCopy(): string {
  const copy = join(mkdtempSync(join(scratch, 'copy-')), 'data')
  cpSync(whole, copy, { recursive: true })
  return copy
}

function find(folder: string, pattern: RegExp): string {
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => pattern.test(name))
  assert.ok(found, `${folder} has nothing like ${pattern}`)
  return join(folder, found)
}

/** The command in this process, which is as good as one of its own, but does not have to start. */
async function assertRefused(data: string, args: readonly string[], reason: RegExp): Promise<void> {
  const untouched = fingerprint(data)
  const failure: unknown = await (await createProgram()).parseAsync([...args, '--data', data], { from: 'user' }).then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(failure, `${args.join(' ')} was not refused`)
  assert.match(describeFailure(failure), reason)
  assert.equal(exitCodeOf(failure), 1)
  assert.equal(fingerprint(data), untouched, `${args.join(' ')} changed the folder`)
}

const SERVE = ['serve', '--port', '0']

const MISSING: readonly (readonly [RegExp, RegExp])[] = [
  [/^stowage\.json$/, /stowage\.json is missing/],
  [/^records\/CURRENT$/, /records\/CURRENT is missing/],
  [/^records\/MANIFEST-\d+$/, /records\/MANIFEST-\d+ is missing/],
  [/^records\/\d+\.ldb$/, /records\/\d+\.ldb is missing/],
  [/^records\/\d+\.log$/, /records\/\d+\.log is missing, and with it the \d+ bytes/],
  [/^records$/, /records\/?[A-Z]* is missing/],
  [/^packs$/, /packs is missing/],
]

test('an incomplete folder is refused and stays unchanged', async (t) => {
  for (const [missing, reason] of MISSING) {
    await t.test(`without ${missing.source}`, async () => {
      const data = newCopy()
      rmSync(find(data, missing), { recursive: true })
      await assertRefused(data, SERVE, reason)
      await assertRefused(data, ['check'], reason)
    })
  }
})

test('a folder of another storage, of a later format or with a damaged marker is refused', async () => {
  const marker = readFileSync(join(whole, 'stowage.json'), 'utf8')
  const withMarker = (text: string): string => {
    const data = newCopy()
    writeFileSync(join(data, 'stowage.json'), text)
    return data
  }
  await assertRefused(newCopy(), [...SERVE, '--storage', 'level'], /holds storage of the kind filesystem/)
  await assertRefused(withMarker(marker.replace('"format":2', '"format":9')), SERVE, /has format 9/)
  await assertRefused(
    withMarker(marker.replace('"format":2', '"format":1')),
    SERVE,
    /has format 1; this release reads format 2; nothing was changed; serve it with the older release that wrote it, export/,
  )
  await assertRefused(
    withMarker(marker.replace('ready', 'reary')),
    SERVE,
    /stowage\.json in the data folder .* is damaged/,
  )
})

test('a folder that another process holds is refused', async (t) => {
  const data = newCopy()
  const { child } = await startServer(t, ['--data', data])
  const reason = new RegExp(`in use by process ${child.pid} `)
  for (const args of [SERVE, ['check'], ['reindex'], ['project', 'list'], ['project', 'remove', 'site', '--yes']])
    await assertRefused(data, args, reason)
})

test('a separate process reports it in one line', async () => {
  const data = newCopy()
  rmSync(find(data, /^records\/CURRENT$/))
  const untouched = fingerprint(data)
  const { code, stdout, stderr } = await stowage([...SERVE, '--data', data])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /^stowage: [^\n]*records\/CURRENT is missing[^\n]*\n$/)
  assert.equal(fingerprint(data), untouched)
})

test('reindex: the exit code distinguishes damage from a failed command', async () => {
  const data = newCopy()
  const reindex = (folder: string): ReturnType<typeof stowage> => stowage(['reindex', '--data', folder])
  const good = await reindex(data)
  assert.deepEqual([good.code, good.stderr], [0, ''])
  assert.match(good.stdout, /\nno damage \(\d+ notes\)\n$/)
  const none = await reindex(join(data, 'none'))
  assert.deepEqual([none.code, none.stdout], [1, ''])
  truncateSync(find(data, /^records\/\d+\.log$/), 1)
  const { code, stdout, stderr } = await reindex(data)
  assert.deepEqual([code, stderr], [4, ''], stdout)
  assert.match(stdout, /^damage: .*\n(.*\n)*1 finding of damage \(and \d+ notes?\)\n$/)
})

test('check finds a flipped bit in the key and in a token record, and serve refuses the key', async () => {
  for (const pattern of [/^access\/key$/, /^access\/tokens\/\w+$/]) {
    const data = newCopy()
    const path = find(data, pattern)
    const bytes = readFileSync(path)
    bytes[10] ^= 1
    writeFileSync(path, bytes)
    const checking = (await createProgram()).parseAsync(['check', '--json', '--data', data], { from: 'user' })
    await assert.rejects(checking, FindingsError)
    if (pattern.source.includes('key')) await assertRefused(data, SERVE, /access\/key is not a key/)
  }
})
