/**
 * The store's own time, which no server's clock can make leap: what waits for a period of grace counts it in epochs.
 */
export interface StoreEpochs {
  /** How long an epoch lasts at least. */
  readonly epochMs: number
  current(): Promise<StoreEpoch>
}

/** The epoch as it was read. A commit with the expectation fails when the next one has begun meanwhile. */
export interface StoreEpoch {
  readonly number: number
  readonly expectation: { readonly key: Uint8Array; readonly value: Uint8Array | undefined }
}
