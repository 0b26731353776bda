/** Lets go of blob content that will not be read, as a loop that is left early does. What fails while it ends was asked for by nobody. */
export async function closeContent(content: AsyncIterable<Uint8Array>): Promise<void> {
  await closeIterator(content[Symbol.asyncIterator]())
}

/** `content`, until `signal` aborts: then it throws the signal's reason at once, even while the content keeps it waiting. */
export async function* abortableContent<T>(
  content: AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T, void, void> {
  if (!signal) {
    yield* content
    return
  }
  const iterator = content[Symbol.asyncIterator]()
  const abort = abortPromise(signal)
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), abort.promise])
      if (next.done === true) return
      yield next.value
    }
  } finally {
    abort.release()
    // Not awaited: content that hangs would keep the one who aborted waiting. After the content's own end this does nothing.
    void closeIterator(iterator)
  }
}

async function closeIterator(iterator: AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.()
  } catch {
    // Why the content is not read on is on its way to the caller already.
  }
}

function abortPromise(signal: AbortSignal): { readonly promise: Promise<never>; readonly release: () => void } {
  let release = (): void => undefined
  const promise = new Promise<never>((_resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    release = () => signal.removeEventListener('abort', abort)
  })
  promise.catch(() => undefined)
  return { promise, release }
}
