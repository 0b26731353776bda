/** The words of an archive; `docs/archive-format.md` describes them for others. */

export const FORMAT = 'stowage-archive'
/** A reader refuses archives of a later version. */
export const FORMAT_VERSION = 1

export const OPENING = 'stowage.json'
export const MANIFEST = 'manifest.json'
export const SOURCE = 'source.json'
export const OBJECTS_FOLDER = 'objects/'
export const RECORDS_FOLDER = 'records/'
export const ARTIFACTS_FOLDER = 'artifacts/'

/** The first entry: what the file is, and what the parts are of. */
export interface Opening {
  /** The name of the format. */
  readonly format: 'stowage-archive'
  /** The version of the format. */
  readonly version: number
}

/** One part as the manifest lists it. */
export interface ManifestPart {
  /** The name of the entry. */
  readonly name: string
  /** The size of the part, in bytes. */
  readonly bytes: number
  /** Hex digits, of the part as it lies in the file. */
  readonly sha256: string
  /** Of a part of objects. */
  readonly objects?: number
}

/** The last but one entry. It tells about the content alone, so two exports of equal projects have equal manifests. */
export interface Manifest extends Opening {
  /** The number of objects in all parts. */
  readonly objects: number
  /** The parts, in the order of the file. */
  readonly parts: readonly ManifestPart[]
  /** Hex digits, of the lines `<sha256>  <name> LF` of all parts. */
  readonly sha256: string
}

/** The last entry: where the content is from, and where the next incremental export goes on. */
export interface Source {
  readonly project: string
  /** Where the objects of the project ended. */
  readonly cursor: string | null
  /** When the runs were listed, by the clock of the server. */
  readonly runsListedAt: string
  /** The `sha256` of the manifest that this archive adds to; `null` for a full one. */
  readonly base: string | null
}

/** What the next export builds on. */
export interface ExportBase {
  /** Where the objects of the base ended; `null` for all objects. */
  readonly cursor: string | null
  /** When the runs of the base were listed. */
  readonly runsListedAt?: string
  /** The `sha256` of the manifest of the base. */
  readonly sha256?: string
}
