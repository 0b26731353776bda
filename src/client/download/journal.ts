/** The beginning of a download that did not come to its end. */
export interface PartialDownload {
  /** The strong tag of the file that it is the beginning of (RFC 9110 section 8.8.3). */
  readonly etag: string
  /** The number of bytes that are there. */
  readonly bytes: number
  /** The first `count` of the bytes, in their order. */
  read(count: number): AsyncIterable<Uint8Array>
}

/** Keeps the compressed bytes of one graph's download until it is complete. Not for several downloads at a time. */
export interface DownloadJournal {
  /** The kept bytes of this download; `undefined` if there are none. */
  load(): Promise<PartialDownload | undefined>
  /** Forgets the kept bytes: the file with this tag follows, from its start. */
  begin(etag: string): Promise<void>
  /** Puts bytes at this place of the file, in place of those that are there; places come in order. */
  write(at: number, bytes: Uint8Array): Promise<void>
}
