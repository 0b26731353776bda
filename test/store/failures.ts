import type { BlobStore, RecordStore, StorageBackend } from '../../src/storage/backend.ts'

export interface Fault {
  /** Calls so far, also those that failed. */
  calls: number
  /** The call that fails, from 0; `undefined` while all is well. */
  at: number | undefined
  /** `once`: that call alone. `crash`: that one and all after it, as if the process were gone. */
  mode: 'once' | 'crash'
  /** Whether the failing call does its work and fails only then: a lost answer. */
  isDone: boolean
  /** What was called, for messages. */
  log: string[]
}

export class InjectedError extends Error {
  override readonly name = 'InjectedError'
}

export function noFault(): Fault {
  return { calls: 0, at: undefined, mode: 'once', isDone: false, log: [] }
}

/** A storage in which chosen calls fail. Each step of a range or a list is a call of its own. */
export function faulty(backend: StorageBackend, fault: Fault): StorageBackend {
  const call: Call = async (name, work, partOfWork = work) => {
    const number = fault.calls++
    fault.log.push(name)
    const isHit = fault.at !== undefined && (number === fault.at || (fault.mode === 'crash' && number > fault.at))
    if (!isHit) return work()
    if (fault.isDone && number === fault.at) await partOfWork()
    throw new InjectedError(`call ${number} (${name}) fails`)
  }
  const steps = async function* <T>(name: string, items: AsyncIterable<T>): AsyncGenerator<T> {
    await call(name, () => Promise.resolve())
    for await (const item of items) {
      yield item
      await call(name, () => Promise.resolve())
    }
  }
  return {
    records: faultyRecords(backend.records, call, steps),
    blobs: faultyBlobs(backend.blobs, call, steps),
    close: () => Promise.resolve(),
  }
}

/**
 * Stands around a call of the storage: it does `work`, or waits before or after it. `detail` is the first key, or the
 * name of the blob.
 */
export type Around = <T>(call: string, detail: string, work: () => Promise<T>) => Promise<T>

/** Whether a call makes objects visible: those of a pack, or the last of them with the note that it is applied. */
export function writesIds(call: string, key: string): boolean {
  return (call === 'insertMany' || call === 'commit') && key.startsWith('o\0')
}

export function hooked(backend: StorageBackend, around: Around): StorageBackend {
  const { records, blobs } = backend
  const first = (keys: readonly Uint8Array[]): string =>
    keys.length === 0 ? '' : Buffer.from(keys[0]).toString('utf8')
  return {
    records: {
      limits: records.limits,
      getMany: (keys, options) => around('getMany', first(keys), () => records.getMany(keys, options)),
      range: (bounds, options) => records.range(bounds, options),
      insertMany: (entries, options) =>
        around('insertMany', first(entries.map(({ key }) => key)), () => records.insertMany(entries, options)),
      commit: (change, options) =>
        around('commit', first((change.put ?? []).map(({ key }) => key)), () => records.commit(change, options)),
      close: () => Promise.resolve(),
    },
    blobs: {
      readBytesPreferred: blobs.readBytesPreferred,
      put: (name, content, options) => around('put', name, () => blobs.put(name, content, options)),
      read: (name, start, end, options) => around('read', name, () => blobs.read(name, start, end, options)),
      remove: (names) => around('remove', names[0] ?? '', () => blobs.remove(names)),
      list: (prefix, options) => blobs.list(prefix, options),
      close: () => Promise.resolve(),
    },
    close: () => Promise.resolve(),
  }
}

/** The same storage, for another service. */
export function sharing(backend: StorageBackend): StorageBackend {
  return hooked(backend, (_call, _detail, work) => work())
}

/** Something to wait for, until somebody opens it. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

/** `partOfWork` is what may have been done by a call that fails after its work began. */
type Call = <T>(name: string, work: () => Promise<T>, partOfWork?: () => Promise<T>) => Promise<T>
type Steps = <T>(name: string, items: AsyncIterable<T>) => AsyncIterable<T>

function faultyRecords(records: RecordStore, call: Call, steps: Steps): RecordStore {
  return {
    limits: records.limits,
    getMany: (keys, options) => call('getMany', () => records.getMany(keys, options)),
    range: (bounds, options) => steps('range', records.range(bounds, options)),
    // Each entry is put for itself, so a call that fails may have put some of them.
    insertMany: (entries, options) => {
      const some = entries.slice(0, entries.length >> 1)
      return call(
        'insertMany',
        () => records.insertMany(entries, options),
        () => records.insertMany(some, options),
      )
    },
    commit: (change, options) => call('commit', () => records.commit(change, options)),
    close: () => Promise.resolve(),
  }
}

function faultyBlobs(blobs: BlobStore, call: Call, steps: Steps): BlobStore {
  return {
    readBytesPreferred: blobs.readBytesPreferred,
    put: (name, content, options) => call('put', () => blobs.put(name, content, options)),
    read: (name, start, end, options) => call('read', () => blobs.read(name, start, end, options)),
    remove: (names) => call('remove', () => blobs.remove(names)),
    list: (prefix, options) => steps('list', blobs.list(prefix, options)),
    close: () => Promise.resolve(),
  }
}

/** Everything in a storage, as it is now. */
export interface Image {
  readonly records: readonly { readonly key: Uint8Array; readonly value: Uint8Array }[]
  readonly blobs: readonly { readonly name: string; readonly bytes: Uint8Array }[]
}

export async function imageOf({ records, blobs }: StorageBackend): Promise<Image> {
  const image = { records: [] as Image['records'][number][], blobs: [] as Image['blobs'][number][] }
  for await (const entries of records.range({ gte: Uint8Array.of(0), lt: Uint8Array.of(0xff) }))
    image.records.push(...entries)
  for await (const batch of blobs.list('')) {
    for (const { name, sizeBytes: size } of batch) image.blobs.push({ name, bytes: await blobs.read(name, 0, size) })
  }
  return image
}

/** Fills an empty storage with an image. */
export async function restore(backend: StorageBackend, image: Image): Promise<StorageBackend> {
  await backend.records.insertMany(image.records)
  for (const { name, bytes } of image.blobs) await putBlob(backend, name, bytes)
  return backend
}

export async function putBlob({ blobs }: StorageBackend, name: string, bytes: Uint8Array): Promise<void> {
  await blobs.remove([name])
  await blobs.put(
    name,
    (async function* () {
      yield bytes
    })(),
  )
}

export async function putRecord(
  { records }: StorageBackend,
  key: Uint8Array,
  value: Uint8Array | undefined,
): Promise<void> {
  await records.commit(value === undefined ? { remove: [key] } : { put: [{ key, value }] })
}
