/// <reference types="node" preserve="true" />

/**
 * Projects as archive files, copies between servers, and backups of a running server.
 *
 * @module stowage/archive
 *
 * @example
 * import { createReadStream, createWriteStream } from 'node:fs'
 * import { pipeline } from 'node:stream/promises'
 * import { createObjectService, openAccess } from 'stowage'
 * import { archives, exportProject, importProject } from 'stowage/archive'
 * import { automation } from 'stowage/automation/server'
 * import { memoryBackend } from 'stowage/memory'
 *
 * const service = createObjectService({
 *   backend: memoryBackend(),
 *   access: openAccess(),
 *   extensions: [automation(), archives()],
 * })
 * const from = {
 *   url: 'http://in.process',
 *   token: undefined,
 *   projectId: 'demo',
 *   fetch: (url: string, init: RequestInit) => service.fetch(new Request(url, init)),
 * }
 * await from.fetch('http://in.process/objects/demo', {
 *   method: 'POST',
 *   headers: { 'Content-Type': 'application/json' },
 *   body: '[{"id":"house","name":"House"}]',
 * })
 * await pipeline(exportProject(from), createWriteStream('demo.tar'))
 * await importProject({ ...from, projectId: 'copy' }, createReadStream('demo.tar'))
 * await service.close()
 */

export { baseOfCursor, baseOfFile } from './base.ts'
export { archives, type ArchivesOptions } from './server/archives.ts'
export type { SecretRecipients } from './server/secret-export.ts'
export { exportInto, exportProject, importProject } from './streams.ts'
export { exportToFile, type ExportFileOptions, type ExportProgress } from './export-file.ts'
export { importFiles, verifyFiles, type ImportOptions, type ImportProgress, type ImportResult } from './import-file.ts'
export { mirrorProject, type MirrorOptions, type MirrorProgress, type MirrorResult } from './mirror.ts'
export type { ArchiveSource } from './read-archive.ts'
export type { ProjectAddress } from './remote.ts'
export type { RecordTotals } from './record-sender.ts'
export type { ExportOptions, ExportResult } from './write-archive.ts'
export type { ExportBase, Manifest, ManifestPart, Opening } from './format.ts'
export { backupServer, type BackupOptions } from './backup.ts'
export type { BackedUpProject, BackupContent, ReplacedArchives } from './backup-format.ts'
export { openBackup, restoreAccess, restoreProjects, type RestoreOptions } from './restore.ts'
