import { createHash } from 'node:crypto'
import { bytesOnDisk } from './piece-file.ts'

/** The beginning of one aligned part of a blob, which is on the disk. */
export interface Piece {
  readonly blob: CachedBlob
  readonly number: number
  readonly sizeBytes: number
  /** When its checksum was last compared, by the monotonic clock. */
  verifiedAtMs: number
}

/** What is known of one blob, while anything of it is on the disk or being fetched. */
export interface CachedBlob {
  /** Hex digits that stand for the store and the name. */
  readonly hash: string
  readonly pieces: Map<number, Piece>
  /** What waits to become pieces. */
  readonly unwritten: Map<number, Uint8Array>
  /** Reads that may still write a piece. */
  users: number
  /** What those reads fetched must not be kept. */
  isRemoved: boolean
}

/** Which pieces there are, from the one that was used least recently to the last. */
export class Pieces {
  readonly #place: string
  readonly #blobs = new Map<string, CachedBlob>()
  readonly #inOrder = new Set<Piece>()
  #sizeBytes = 0

  /** `place` distinguishes stores whose blobs have the same names. */
  constructor(place: string) {
    this.#place = place
  }

  /** What the pieces take on the disk. */
  get sizeBytes(): number {
    return this.#sizeBytes
  }

  get oldest(): Piece | undefined {
    const [piece] = this.#inOrder
    return piece
  }

  /** The blob, in use until `leave`. */
  enter(name: string): CachedBlob {
    const hash = createHash('sha256').update(`${this.#place}\0${name}`).digest('hex').slice(0, 40)
    const blob = this.blobOf(hash)
    blob.users++
    return blob
  }

  leave(blob: CachedBlob): void {
    blob.users--
    this.#forgetIfEmpty(blob)
  }

  blobOf(hash: string): CachedBlob {
    const known = this.#blobs.get(hash)
    if (known !== undefined) return known
    const blob: CachedBlob = { hash, pieces: new Map(), unwritten: new Map(), users: 0, isRemoved: false }
    this.#blobs.set(hash, blob)
    return blob
  }

  /** The piece was used just now. */
  touch(piece: Piece): void {
    if (this.#inOrder.delete(piece)) this.#inOrder.add(piece)
  }

  add(blob: CachedBlob, number: number, sizeBytes: number, verifiedAtMs: number): void {
    const earlier = blob.pieces.get(number)
    if (earlier !== undefined) this.#uncount(earlier)
    const piece = { blob, number, sizeBytes, verifiedAtMs }
    blob.pieces.set(number, piece)
    this.#inOrder.add(piece)
    this.#sizeBytes += bytesOnDisk(sizeBytes)
  }

  drop(piece: Piece): void {
    if (piece.blob.pieces.get(piece.number) === piece) piece.blob.pieces.delete(piece.number)
    this.#uncount(piece)
    this.#forgetIfEmpty(piece.blob)
  }

  /** Returns the pieces that there were. What is being fetched is not kept. */
  remove(name: string): readonly Piece[] {
    const blob = this.enter(name)
    const pieces = [...blob.pieces.values()]
    blob.isRemoved = true
    for (const piece of pieces) this.drop(piece)
    this.#blobs.delete(blob.hash)
    return pieces
  }

  #uncount(piece: Piece): void {
    if (this.#inOrder.delete(piece)) this.#sizeBytes -= bytesOnDisk(piece.sizeBytes)
  }

  #forgetIfEmpty(blob: CachedBlob): void {
    if (blob.users === 0 && blob.pieces.size === 0 && this.#blobs.get(blob.hash) === blob) this.#blobs.delete(blob.hash)
  }
}
