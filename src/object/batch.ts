/**
 * Many inspected objects in a few typed arrays: on a bulk path no object of its own, and no string, exists for each of them.
 *
 * `names` holds the ids that the objects mention, one after the other; `nameEnds[k]` is where name k ends. Object i mentions the names from
 * `claimEnds[i - 1]` (0 for the first) up to `referenceEnds[i]` as references, and from there up to `claimEnds[i]` as claims (`__closure`).
 *
 * `lines` and `names` may be in memory of a pool: who needs one of them no more may give it back to the pool.
 */
export interface ObjectBatch {
  readonly count: number
  /** The objects as they will be sent: lines `<id> TAB <json> LF`, one after the other. */
  readonly lines: Uint8Array
  /** Bytes of line i, its LF included. */
  readonly lineBytes: Uint32Array
  /** Bytes of the id that line i starts with. */
  readonly idBytes: Uint16Array
  readonly names: Uint8Array
  readonly nameEnds: Uint32Array
  readonly referenceEnds: Uint32Array
  readonly claimEnds: Uint32Array
  /** The lines as a client compressed them, block by block. Together they are all lines of the batch. */
  readonly blocks?: readonly ReadyBlock[]
}

/** Lines of a batch as one DEFLATE fragment, such as packs consist of. */
export interface ReadyBlock {
  /** Lines. */
  readonly count: number
  readonly stored: Uint8Array
  readonly rawBytes: number
  readonly rawCrc32: number
}
