/** A content whose first bytes can be looked at before it is iterated. */
export interface Sniffed {
  /** At least as many bytes as were asked for, or all there are. */
  readonly opening: Uint8Array
  /** All of the content, `opening` included. */
  readonly whole: AsyncIterable<Uint8Array>
  /** To be called when `whole` may never have been iterated. */
  close(): Promise<void>
}

/** Reads ahead until `bytes` bytes have come. */
export async function sniff(content: AsyncIterable<Uint8Array>, bytes: number): Promise<Sniffed> {
  const iterator = content[Symbol.asyncIterator]()
  const chunks: Uint8Array[] = []
  let length = 0
  while (length < bytes) {
    const step = await iterator.next()
    if (step.done === true) break
    chunks.push(step.value)
    length += step.value.length
  }
  const close = async (): Promise<void> => void (await iterator.return?.())
  return { opening: Buffer.concat(chunks), whole: continued(chunks, iterator, close), close }
}

async function* continued(
  chunks: readonly Uint8Array[],
  iterator: AsyncIterator<Uint8Array>,
  close: () => Promise<void>,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
    for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) yield step.value
  } finally {
    await close()
  }
}
