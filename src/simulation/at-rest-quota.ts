import { amountOf } from './amounts.ts'
import type { Destination, SimulatedClient } from './client.ts'
import { exportAll } from './keeper.ts'
import { plannedObject, type PlannedObject } from './models.ts'
import { Violation } from './oracle.ts'
import type { SimulatedProcess } from './process.ts'
import { uploadOnce } from './uploading.ts'

const PAGE_BYTES = 10_000

/** Nothing is under way any more: the rest of the quota can be used to the last object and byte, and nothing beyond. */
export async function fillQuota(to: Destination, client: SimulatedClient, clients: SimulatedProcess): Promise<void> {
  const { quota, projectId } = to
  if (quota === undefined) return
  const held = amountOf(await exportAll(to, PAGE_BYTES, clients))
  const { objectsMax = Infinity, jsonBytesMax = Infinity } = quota.quota
  const objectsLeft = objectsMax - held.objects
  const bytesLeft = jsonBytesMax - held.jsonBytes
  const form = { isBroken: false, isZipped: false, asks: false, requests: 1 }
  const place = { kind: 'upload', index: 0, atMs: 0, server: 0, projectId, ...form } as const
  const expect = async (objects: readonly PlannedObject[], isRefused: boolean): Promise<void> => {
    if ((await uploadOnce({ ...place, objects }, to, client)) === isRefused) return
    const rest = `${objectsLeft} objects and ${bytesLeft} bytes are left`
    throw new Violation(`${objects.length} objects are ${isRefused ? 'taken' : 'refused'}, though ${rest}`)
  }
  const count = Number.isFinite(objectsLeft) ? objectsLeft : 1
  const fitting = count > 0 ? filling(count, bytesLeft) : undefined
  if (objectsLeft < Infinity) await expect(filling(Math.max(0, objectsLeft) + 1), true)
  if (fitting === undefined) return expect(filling(Math.max(1, count)), true)
  if (bytesLeft < Infinity) await expect(filling(count, bytesLeft + 1) ?? [], true)
  await expect(fitting, false)
  await expect([plannedObject('fill-beyond', { text: '' })], true)
}

/** So many objects, of so many bytes together if that is given. `undefined` if they need more. */
function filling(count: number): PlannedObject[]
function filling(count: number, jsonBytes: number): PlannedObject[] | undefined
function filling(count: number, jsonBytes = Infinity): PlannedObject[] | undefined {
  const made = (text: string): PlannedObject[] =>
    Array.from({ length: count }, (_, at) => plannedObject(`fill-${at}`, { text: at === 0 ? text : '' }))
  const least = made('').reduce((sum, { json }) => sum + json.length, 0)
  if (jsonBytes === Infinity) return made('')
  return least > jsonBytes ? undefined : made('x'.repeat(jsonBytes - least))
}
