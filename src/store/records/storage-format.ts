import { StowageError } from '../../errors.ts'
import type { RecordStore } from '../../storage/backend.ts'
import { keyBounds } from './keys.ts'
import { RECORD_VERSION, versionOf } from './seal.ts'

/** Records of each of these kinds are looked at; damaged ones say nothing. */
const KINDS = ['epoch', 'head', 'pack', 'object'] as const
const LOOKED_AT_MAX = 16

/**
 * Refuses a storage that another release wrote in another format, before anything of it is changed. Throws
 * `corrupt_data` with what to do.
 */
export async function checkStorageFormat(records: RecordStore): Promise<void> {
  for (const kind of KINDS) {
    for await (const entries of records.range({ ...keyBounds(kind), limit: LOOKED_AT_MAX })) {
      for (const { key, value } of entries) {
        const version = versionOf(key, value)
        if (version === RECORD_VERSION) return
        if (version !== undefined) throw otherFormat(version)
      }
    }
  }
}

function otherFormat(version: number): StowageError {
  const whose = version < RECORD_VERSION ? 'an older release' : 'a newer release'
  const remedy =
    version < RECORD_VERSION
      ? 'Serve it with the release that wrote it, export its projects ("stowage export") and import them into a new folder ("stowage import")'
      : 'Use a release that is at least as new as the one that wrote it'
  return new StowageError(
    'corrupt_data',
    `this storage was written by ${whose}: its records have version ${version}; this release reads version ${RECORD_VERSION}. Nothing was changed. ${remedy}`,
  )
}
