import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { errorOf, idList, jsonUpload } from '../http/served.ts'
import { HOSTS } from '../mounts/hosts.ts'
import { eventually } from '../support/patience.ts'
import { hostProcess, type HostProcess } from './process.ts'
import { temporaryFolder } from '../support/folder.ts'

/* Case 23 through every mount: a machine that has no room, no open files, or no working disk any more. */

const run = promisify(execFile)
const DISK_MB = 32
/** So large that a batch becomes a file of its own, and is not put beside the records. */
const OBJECT_BYTES = 400_000
const OBJECTS_A_BATCH = 3
/** To compress what hardly shrinks takes most of the time of reading it. */
const UNCOMPRESSED = { headers: { 'accept-encoding': 'identity' } }

interface Held {
  readonly id: string
  readonly text: string
}

function batch(name: string): readonly Held[] {
  return Array.from({ length: OBJECTS_A_BATCH }, (_, n) => ({
    id: `${name}-${n}`,
    text: randomBytes(OBJECT_BYTES / 2).toString('hex'),
  }))
}

function upload({ url }: HostProcess, objects: readonly Held[]): Promise<Response> {
  return fetch(`${url}/objects/p`, jsonUpload(objects))
}

/** Uploads until it is refused; the refusal is to have one of these. */
async function uploadUntilRefused(
  host: HostProcess,
  acknowledged: Held[],
): Promise<{ readonly status: number; readonly code: string; readonly refused: readonly Held[] }> {
  for (let n = 0; n < 4 * DISK_MB; n++) {
    const objects = batch(`b${acknowledged.length}`)
    const answer = await upload(host, objects)
    if (answer.status !== 200) {
      const { status, code } = await errorOf(answer)
      return { status, code, refused: objects }
    }
    await answer.arrayBuffer()
    acknowledged.push(...objects)
  }
  throw new Error('nothing was refused')
}

/** Whatever was acknowledged is there with all its bytes, and whatever was refused is not. */
async function readable(
  { url }: HostProcess,
  acknowledged: readonly Held[],
  refused: readonly Held[] = [],
): Promise<void> {
  for (const object of acknowledged)
    assert.deepEqual(await (await fetch(`${url}/objects/p/${object.id}/single`, UNCOMPRESSED)).json(), object)
  const held = (await (await fetch(`${url}/api/diff/p`, idList(refused.map(({ id }) => id)))).json()) as Record<
    string,
    boolean
  >
  assert.deepEqual(
    Object.values(held).filter((isHeld) => isHeld),
    [],
  )
}

/** A file system of its own, small enough to fill; only the superuser of a Linux may have one. */
async function smallDisk(t: TestContext): Promise<string | undefined> {
  const path = await mkdtemp(join(tmpdir(), 'stowage-disk-'))
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', path])
  } catch {
    await rm(path, { recursive: true })
    return undefined
  }
  t.after(async () => {
    await run('umount', ['-l', path])
    await rm(path, { recursive: true })
  })
  return path
}

for (const { name } of HOSTS) {
  test(`case 23: ${name}: a full disk is 507, acknowledged objects stay readable, and uploads resume once there is room`, async (t) => {
    const disk = await smallDisk(t)
    if (disk === undefined) return t.skip('needs the right to mount a tmpfs')
    const host = await hostProcess(t, name, { path: `${disk}/data` })
    const acknowledged: Held[] = []
    const { status, code, refused } = await uploadUntilRefused(host, acknowledged)
    assert.deepEqual([status, code], [507, 'storage_full'])
    assert.ok(acknowledged.length >= 2 * OBJECTS_A_BATCH, `${acknowledged.length} objects fitted`)
    await readable(host, acknowledged, refused)
    await run('mount', ['-o', `remount,size=${2 * DISK_MB}m`, disk])
    await eventually(async () => {
      const again = await upload(host, refused)
      await again.arrayBuffer()
      return again.status === 200
    }, 'the room is seen')
    await readable(host, [...acknowledged, ...refused])
    await host.end()
  })

  test(`case 23: ${name}: too many open files cause a temporary 503 with Retry-After`, async (t) => {
    // Node opens some hundred modules at once when the process begins.
    const host = await hostProcess(t, name, { openFilesMax: 400 })
    const before = batch('before')
    assert.equal((await upload(host, before)).status, 200)
    // The connection that is open already serves on: a new one could not be accepted.
    await host.tell('take all files')
    const refused = await upload(host, batch('during'))
    assert.ok(refused.headers.get('retry-after') !== null)
    assert.equal((await errorOf(refused)).status, 503)
    await host.tell('give files back')
    assert.equal((await upload(host, batch('after'))).status, 200)
    await readable(host, before)
    await host.end()
  })

  test(`case 23: ${name}: a failed sync is 503 until the storage reopens, and acknowledged objects stay readable`, async (t) => {
    const path = temporaryFolder(t)
    const host = await hostProcess(t, name, { path })
    const [before, during, after] = [batch('before'), batch('during'), batch('after')]
    assert.equal((await upload(host, before)).status, 200)
    await host.tell('fail syncs')
    assert.equal((await errorOf(await upload(host, during))).status, 503)
    await host.tell('let syncs be')
    const poisoned = await errorOf(await upload(host, after))
    assert.deepEqual([poisoned.status, poisoned.code], [503, 'storage_unavailable'])
    await readable(host, before, [...during, ...after])
    await host.end()
    const again = await hostProcess(t, name, { path })
    assert.equal((await upload(again, after)).status, 200)
    await readable(again, [...before, ...after], during)
    await again.end()
  })
}
