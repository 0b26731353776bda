import type { Duplex, Readable, Writable } from 'node:stream'
import type { ReadableStream, WritableStream } from 'node:stream/web'
import { expectAssignable, expectError, expectType } from 'tsd'
import {
  createObjectService,
  openAccess,
  type ProjectObjects,
  type ProjectStreams,
  type UploadStream,
  type UploadSummary,
} from 'stowage'
import { memoryBackend } from 'stowage/memory'
import { boundedGunzip, parseIds, parseObjects, toWebReadable, toWebWritable } from 'stowage/streams'

const project = createObjectService({ backend: memoryBackend(), access: openAccess() }).project('demo')
expectAssignable<ProjectStreams>(project)
expectType<ProjectObjects>(project)

// In process.
const upload = project.createUploadStream({
  contentType: 'application/gzip',
  highWaterMark: 1,
  signal: AbortSignal.any([]),
})
expectType<UploadStream>(upload)
expectAssignable<Writable>(upload)
expectType<UploadSummary | undefined>(upload.summary)
expectType<UploadStream>(project.createUploadStream({ objectMode: true }))
expectType<UploadStream>(project.createUploadStream({ contentLength: 5 }))
expectError(project.createUploadStream({ contentLength: '5' }))
expectError((upload.summary = undefined))
expectType<Readable>(project.createGraphStream('root', { format: 'json', coding: 'gzip', have: ['other'] }))
expectType<Readable>(project.createObjectsStream(new Set(['a']), { objectMode: true }))
expectError(project.createGraphStream())
expectError(project.createGraphStream('root', { format: 'ndjson' }))
expectError(project.createObjectsStream([1]))
expectError(project.createObjectsStream(['a'], { have: ['b'] }))

// What hosts do themselves.
expectType<Duplex>(parseObjects({ format: 'ndjson', output: 'texts', objectBytesMax: 1, readableHighWaterMark: 1 }))
expectError(parseObjects({ format: 'csv' }))
expectType<Duplex>(parseIds({ bytesMax: 1 }))
expectType<Duplex>(boundedGunzip({ bytesMax: 1 }))
expectType<ReadableStream<Uint8Array>>(toWebReadable(project.createGraphStream('root')))
expectType<WritableStream>(toWebWritable(upload))
expectError(toWebReadable(upload))
