import type { Change, StorageBackend } from '../../src/storage/backend.ts'

/** A storage, and the moment at which its process dies. */
export interface DyingBackend {
  readonly backend: StorageBackend
  /** The process dies by SIGKILL at the change of the storage that is this many changes ahead. */
  readonly dieAfter: (changes: number) => void
}

/** Each change is one moment before it, one after it, and for a blob one in its middle. */
const MOMENTS = 3

export function dyingBackend(inner: StorageBackend): DyingBackend {
  let momentsLeft = Infinity
  const moment = async (): Promise<void> => {
    if (momentsLeft-- > 0) return
    process.kill(process.pid, 'SIGKILL')
    await new Promise(() => undefined)
  }
  const around = async <T>(act: () => Promise<T>): Promise<T> => {
    await moment()
    const result = await act()
    await moment()
    return result
  }
  const { records, blobs } = inner
  return {
    dieAfter: (changes) => {
      momentsLeft = changes * MOMENTS
    },
    backend: {
      records: {
        get limits() {
          return records.limits
        },
        getMany: (keys, options) => records.getMany(keys, options),
        range: (bounds, options) => records.range(bounds, options),
        insertMany: (entries, options) => around(() => records.insertMany(entries, options)),
        commit: (change: Change, options) => around(() => records.commit(change, options)),
        close: () => records.close(),
      },
      blobs: {
        get readBytesPreferred() {
          return blobs.readBytesPreferred
        },
        put: (name, content, options) => around(() => blobs.put(name, dyingContent(content, moment), options)),
        read: (name, start, end, options) => blobs.read(name, start, end, options),
        remove: (names) => around(() => blobs.remove(names)),
        list: (prefix, options) => blobs.list(prefix, options),
        close: () => blobs.close(),
      },
      ready: async () => inner.ready?.(),
      close: () => inner.close(),
    },
  }
}

async function* dyingContent(
  content: AsyncIterable<Uint8Array>,
  moment: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let isFirst = true
  for await (const chunk of content) {
    yield chunk
    if (isFirst) await moment()
    isFirst = false
  }
}
