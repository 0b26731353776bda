/** Memories of WebAssembly consist of pages of this size. */
const PAGE_BYTES = 65_536
/** Smaller buffers come from the allocator. */
export const MAPPED_BYTES_MIN: number = PAGE_BYTES

interface WebAssemblyMemories {
  readonly Memory: new (descriptor: { readonly initial: number; readonly maximum: number }) => {
    readonly buffer: ArrayBuffer
  }
}

const { WebAssembly: memories } = globalThis as { readonly WebAssembly?: WebAssemblyMemories }
/**
 * Not in Bun, whose streams cannot pass such memory on. A process that may not have the addresses gets none at its start
 * either.
 */
const isAvailable = process.versions.bun === undefined && mapped(PAGE_BYTES) !== undefined

/**
 * A buffer of at least so many bytes that is mapped by itself: all of it returns to the system once it is garbage. The
 * allocator of the system puts large buffers between small ones, and what they leave is seldom returned. V8 maps each
 * memory of WebAssembly; nothing runs in it. It takes 10 GB of addresses, so where a process may not have them
 * (`ulimit -v`), and without WebAssembly, buffers come from the allocator. It is filled with zeros.
 */
export function mappedBuffer(bytes: number): ArrayBuffer {
  return (bytes >= MAPPED_BYTES_MIN && isAvailable ? mapped(bytes) : undefined) ?? new ArrayBuffer(bytes)
}

function mapped(bytes: number): ArrayBuffer | undefined {
  if (memories === undefined) return undefined
  const pages = Math.ceil(bytes / PAGE_BYTES)
  try {
    return new memories.Memory({ initial: pages, maximum: pages }).buffer
  } catch {
    return undefined
  }
}

/** Zeros, in a buffer of their own if they are many. */
export function mappedUint32s(count: number): Uint32Array {
  const bytes = count * Uint32Array.BYTES_PER_ELEMENT
  return bytes < MAPPED_BYTES_MIN ? new Uint32Array(count) : new Uint32Array(mappedBuffer(bytes), 0, count)
}

/** The same, as bytes. */
export function mappedBytes(count: number): Uint8Array {
  return count < MAPPED_BYTES_MIN ? new Uint8Array(count) : new Uint8Array(mappedBuffer(count), 0, count)
}
