import assert from 'node:assert/strict'
import { MB } from '../../src/limits.ts'
import { jsonUpload } from '../http/served.ts'
import type { AttackedServer } from './attacked.ts'

/** A list of ids as they are, 35 bytes each. */
export function listOf(bytes: number): Buffer {
  const ids = Array.from({ length: Math.floor(bytes / 35) }, (_, n) => `"${n.toString(16).padStart(32, '0')}"`)
  return Buffer.from(`{"objectIds":[${ids.join()}]}`)
}

/** Honest work, so that what a server needs to live is there before an attack is measured. */
export async function warmed(server: AttackedServer): Promise<void> {
  const objects = Array.from({ length: 20_000 }, (_, n) => ({
    id: n.toString(16).padStart(32, '0'),
    text: 'x'.repeat(100),
  }))
  assert.equal((await fetch(`${server.url}/objects/p`, jsonUpload(objects))).status, 200)
  const list = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: listOf(2 * MB) }
  const warm = async (): Promise<unknown> =>
    (await fetch(`${server.url}/api/v2/projects/p/object-stream`, list)).arrayBuffer()
  await Promise.all(Array.from({ length: 8 }, warm))
  await server.forgetPeak()
}
