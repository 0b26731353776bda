import { createHash } from 'node:crypto'
import { Yielder } from '../../async/yielder.ts'
import type { Environment } from '../../environment.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import type { ProjectView } from '../records/project-view.ts'
import type { PackSelection } from './closure.ts'

const STEPS_BETWEEN_LOOKS = 65_536

interface DigestParts {
  readonly catalog: PackCatalog
  readonly environment: Environment
}

/**
 * Names the contents of a closure, wherever they lie: 32 hex digits of the SHA-256 of the number of objects, the bytes
 * of their lines, and two sums over the checksums of their texts. The sums do not depend on the order of the objects,
 * so a merge of packs or a reindex changes nothing. No id is hashed: the closures that are compared are of one root,
 * and while nothing is collected such a closure can only grow.
 */
export async function contentDigest(
  { catalog, environment }: DigestParts,
  project: ProjectView,
  packs: readonly PackSelection[],
  signal: AbortSignal,
): Promise<string> {
  const yielder = new Yielder(environment)
  let objects = 0
  let totalBytes = 0
  let sum = 0
  let mixedSum = 0
  for (const { sequence, wanted } of packs) {
    const { lineBytes, textCrc32 } = await catalog.tables(await catalog.pack(project, sequence))
    for (let ordinal = 0; ordinal < lineBytes.length; ordinal++) {
      if (ordinal % STEPS_BETWEEN_LOOKS === STEPS_BETWEEN_LOOKS - 1) {
        signal.throwIfAborted()
        await yielder.due()
      }
      if (!wanted.has(ordinal)) continue
      objects++
      totalBytes += lineBytes[ordinal]
      sum = (sum + textCrc32[ordinal]) >>> 0
      mixedSum = (mixedSum + mixed(textCrc32[ordinal], lineBytes[ordinal])) >>> 0
    }
  }
  return createHash('sha256').update([objects, totalBytes, sum, mixedSum].join(' ')).digest('hex').slice(0, 32)
}

/** Not linear in the checksum, so that the two sums are independent. */
function mixed(textCrc32: number, lineBytes: number): number {
  const product = Math.imul(textCrc32 ^ Math.imul(lineBytes, 0x9e3779b1), 0x85ebca6b)
  return Math.imul(product ^ (product >>> 15), 0xc2b2ae35)
}
