/**
 * Node streams and web streams of objects, for hosts.
 *
 * @module stowage/streams
 *
 * @example
 * import { Readable } from 'node:stream'
 * import { parseObjects } from 'stowage/streams'
 *
 * const lines = Readable.from([Buffer.from('{"id":"a"}\n{"id":"b"}\n')])
 * for await (const object of lines.pipe(parseObjects({ format: 'ndjson' }))) console.log(object)
 */

export type { TransformOptions } from './batch-duplex.ts'
export type { ObjectChunk } from './object-text.ts'
export {
  boundedGunzip,
  type GunzipOptions,
  parseIds,
  type ParseIdsOptions,
  parseObjects,
  type ParseObjectsOptions,
} from './transforms.ts'
export { toWebReadable, toWebWritable } from './web.ts'
