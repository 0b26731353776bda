import type { Destination, SimulatedClient } from './client.ts'
import { codeOf } from './expectations.ts'
import type { PlannedUpload } from './operations.ts'
import { Violation } from './oracle.ts'
import type { Upload } from './span.ts'

/** An upload that is answered so has left nothing. */
const NOTHING_KEPT: ReadonlySet<string> = new Set(['project_removed', 'base_mismatch'])

/** Makes the requests of an upload, one after the other, and tells the oracle. */
export async function upload(operation: PlannedUpload, to: Destination, client: SimulatedClient): Promise<void> {
  const { objects, requests } = operation
  const size = Math.ceil(objects.length / requests)
  for (let first = 0; first < objects.length; first += size)
    await uploadOnce({ ...operation, objects: objects.slice(first, first + size) }, to, client)
}

/** Resolves to whether the quota refused it. */
export async function uploadOnce(planned: PlannedUpload, to: Destination, client: SimulatedClient): Promise<boolean> {
  const { oracle, life, quota } = to
  let begun: Upload | undefined
  const end = (): void => {
    if (begun?.end === Infinity) oracle.end(begun)
  }
  void life.over.then(end)
  const settle = (outcome: Upload['outcome']): void => {
    if (begun?.end === Infinity) begun.outcome = outcome
    end()
  }
  try {
    await client.upload(planned, to, (texts, bytes) => {
      begun = oracle.beginUpload(texts)
      quota?.begin({ upload: begun, bodyBytes: planned.isLengthKnown === true ? bytes : 0, server: life })
    })
    if (planned.isBroken && begun !== undefined) throw new Violation('a broken body was accepted')
    settle('acknowledged')
    quota?.check()
    return false
  } catch (error) {
    if (begun !== undefined && quota?.hasRefused(begun, error) === true) {
      settle('refused')
      return true
    }
    const isRefused = planned.isBroken || NOTHING_KEPT.has(codeOf(error) ?? '')
    settle(isRefused ? 'refused' : 'unknown')
    throw error
  }
}
