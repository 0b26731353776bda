/// <reference types="node" preserve="true" />

export { baseOfCursor, baseOfFile } from './base.ts'
export { archives, type ArchivesOptions } from './server/archives.ts'
export { exportProject, importProject } from './streams.ts'
export { exportToFile, type ExportFileOptions, type ExportProgress, type ExportResult } from './export-file.ts'
export { importFiles, verifyFiles, type ImportOptions, type ImportProgress, type ImportResult } from './import-file.ts'
export { mirrorProject, type MirrorOptions, type MirrorProgress, type MirrorResult } from './mirror.ts'
export type { ProjectAddress } from './remote.ts'
export type { RecordTotals } from './record-sender.ts'
export type { ExportOptions } from './write-archive.ts'
export type { ExportBase, Manifest, ManifestPart, Opening } from './format.ts'
