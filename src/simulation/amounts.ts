import type { GraphRoot } from '../object/roots.ts'
import { childrenReader } from './models.ts'
import { Violation } from './oracle.ts'

/** How much is held, or is brought. */
export interface Amount {
  readonly objects: number
  readonly jsonBytes: number
}

/** Texts by their ids. */
export type Texts = ReadonlyMap<string, string>

export function amountOf(texts: Texts): Amount {
  let jsonBytes = 0
  for (const text of texts.values()) jsonBytes += Buffer.byteLength(text)
  return { objects: texts.size, jsonBytes }
}

/** The roots and everything below them, as far as it is there. */
export function closureOf(
  texts: Texts,
  roots: Iterable<Pick<GraphRoot, 'rootObjectId'> | string>,
): ReadonlySet<string> {
  const reached = new Set<string>()
  for (const root of roots) reached.add(typeof root === 'string' ? root : root.rootObjectId)
  const childrenOf = childrenReader()
  for (const id of reached) for (const child of childrenOf(texts.get(id))) reached.add(child)
  return reached
}

/** Throws `Violation` unless this was counted. `name` says of what. */
export function sameAmount(name: string, counted: Amount = { objects: 0, jsonBytes: 0 }, expected: Amount): void {
  if (counted.objects !== expected.objects || counted.jsonBytes !== expected.jsonBytes)
    throw new Violation(
      `${name} ${counted.objects} objects and ${counted.jsonBytes} bytes; it should be ${expected.objects} and ${expected.jsonBytes}`,
    )
}
