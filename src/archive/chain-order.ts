import { StowageError } from '../errors.ts'
import { quotedPath } from '../object/id.ts'
import type { Manifest, Source, SourceBase } from './format.ts'

/** An archive of a chain that was read. */
export interface ReadArchive {
  /** What messages call it. */
  readonly label: string
  readonly manifest: Manifest
  readonly source: Source
}

/**
 * Throws `invalid_request`, with the name of the missing archive, for an incremental archive without the one that it
 * adds to. `before` is the archive before it among those that were given.
 */
export function checkPlace(label: string, { base }: Source, before: ReadArchive | undefined): void {
  if (before === undefined) {
    // After an archive without objects, everything follows.
    if (base === null || base.cursor === null) return
    throw misplaced(
      `${label} is incremental: without ${nameOf(base)}, its project is not whole. Name that archive before it`,
    )
  }
  if (base === null)
    throw misplaced(`${label} is a full archive, which continues nothing: it stands first, or is imported alone`)
  const { sha256 } = before.manifest
  // A cursor names one history of one project.
  const isNext = base.sha256 === null ? base.cursor === before.source.cursor : base.sha256 === sha256
  if (isNext) return
  throw misplaced(
    `${label} continues ${nameOf(base)}, and not ${before.label} (SHA-256 of its manifest: ${sha256}). Name that archive before it`,
  )
}

function nameOf({ sha256, file, cursor }: SourceBase): string {
  if (sha256 === null) return `the archive that ends at the cursor ${cursor}`
  const digest = `SHA-256 of its manifest: ${sha256}`
  return file === null ? `the archive before it (${digest})` : `${quotedPath(file)} (${digest})`
}

function misplaced(text: string): StowageError {
  return new StowageError('invalid_request', `${text}; a chain is a full archive with all incremental ones after it`)
}
