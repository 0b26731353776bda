import { type Command, Option } from 'commander'
import type { ProjectQuota } from '../../object/graph-store.ts'
import { positiveInteger } from '../common/options.ts'

/** The options of `stowage serve` that limit each project. */
export interface QuotaServeOptions {
  readonly quotaObjectsMax?: number
  readonly quotaJsonBytesMax?: number
  readonly quotaStoredBytesMax?: number
}

export function addQuotas(command: Command): void {
  command
    .addOption(
      new Option('--quota-objects-max <n>', 'objects that each project may hold (default: any number)').argParser(
        positiveInteger,
      ),
    )
    .addOption(
      new Option(
        '--quota-json-bytes-max <n>',
        'bytes of JSON that each project may hold; beyond it uploads are answered 507 (default: any number)',
      ).argParser(positiveInteger),
    )
    .addOption(
      new Option(
        '--quota-stored-bytes-max <n>',
        'bytes in storage that each project may take, compressed (default: any number)',
      ).argParser(positiveInteger),
    )
}

/** `undefined` where no option bounds anything. */
export function quotaOf({
  quotaObjectsMax: objectsMax,
  quotaJsonBytesMax: jsonBytesMax,
  quotaStoredBytesMax: storedBytesMax,
}: QuotaServeOptions): ProjectQuota | undefined {
  const quota = { objectsMax, jsonBytesMax, storedBytesMax }
  return Object.values(quota).every((max) => max === undefined) ? undefined : quota
}
