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
