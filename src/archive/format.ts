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

/** The first entry: the kind of the file, and the subject of its parts. */
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

/** The last entry: the source of the content, and the start of the next incremental export. */
export interface Source {
  readonly project: string
  /** The end of the project's objects. */
  readonly cursor: string | null
  /** The time at which the runs were listed, by the clock of the server. */
  readonly runsListedAt: string
  /** The archive that this one adds to; `null` for a full one. */
  readonly base: SourceBase | null
}

/** The archive before an incremental one. */
export interface SourceBase {
  /** The end of its objects; `null` if it had none. */
  readonly cursor: string | null
  /** The `sha256` of its manifest; `null` if only the cursor was given. */
  readonly sha256: string | null
  /** The name that its file had; `null` if only the cursor was given. */
  readonly file: string | null
}

/** The basis of the next export. */
export interface ExportBase {
  /** The end of the base's objects; `null` for all objects. */
  readonly cursor: string | null
  /** The time at which the runs of the base were listed. */
  readonly runsListedAt?: string
  /** The `sha256` of the manifest of the base. */
  readonly sha256?: string
  /** The project of the base. An export of another project is refused. */
  readonly project?: string
  /** The file of the base, for messages. */
  readonly path?: string
}
