import type { PartBuffer } from './part-buffer.ts'
import { COURTESY, type S3Client } from './s3-client.ts'
import { S3Error } from './s3-error.ts'
import { elementsOf, escaped, textOf } from './xml.ts'

/** What one request carries at most; a larger blob is put in parts of this size. */
export const PART_BYTES: number = 8 * 1_048_576
/** The store allows 10,000 parts. */
const PARTS_MAX = 10_000
/** An upload that died is aborted after this long. A living one takes hours at most. */
const LEFTOVER_AGE_MS = 24 * 60 * 60_000

export interface Upload {
  readonly key: string
  /** Unique; it tells an object of ours from that of another writer. */
  readonly nonce: string
  readonly signal: AbortSignal | undefined
}

/** The name of the header that keeps the nonce. */
export const NONCE_HEADER = 'x-amz-meta-stowage-nonce'

/** Puts an object that does not exist yet. Throws `S3Error` with status 412 if it does. */
export async function putWhole(client: S3Client, { key, nonce, signal }: Upload, content: PartBuffer): Promise<void> {
  const headers = { 'if-none-match': '*', [NONCE_HEADER]: nonce }
  await client.send({ method: 'PUT', key, headers, body: content.slices, signal })
}

/**
 * The same for content of any size: parts, and a completion on the condition that the object does not exist. `part`
 * holds the first part already. A failure leaves no parts behind.
 */
export async function putInParts(client: S3Client, upload: Upload, part: PartBuffer): Promise<number> {
  const { key, nonce, signal } = upload
  const headers = { [NONCE_HEADER]: nonce }
  const created = await client.send({ method: 'POST', key, query: { uploads: '' }, headers, signal })
  const uploadId = textOf(Buffer.from(created.body).toString('utf8'), 'UploadId')
  if (uploadId === undefined) throw new Error(`the S3 store began the upload of ${key} without an UploadId`)
  try {
    const { etags, sizeBytes } = await putParts(client, upload, uploadId, part)
    const body = [Buffer.from(completion(etags))]
    const query = { uploadId }
    await client.send({ method: 'POST', key, query, headers: { 'if-none-match': '*' }, body, signal })
    return sizeBytes
  } catch (error) {
    await abortUpload(client, key, uploadId).catch(() => undefined)
    throw error
  }
}

async function putParts(
  client: S3Client,
  { key, signal }: Upload,
  uploadId: string,
  part: PartBuffer,
): Promise<{ etags: string[]; sizeBytes: number }> {
  const etags: string[] = []
  let sizeBytes = 0
  for (let hasMore = true; hasMore;) {
    if (etags.length === PARTS_MAX) throw new Error(`the blob is larger than ${PARTS_MAX} parts of ${PART_BYTES} bytes`)
    const query = { partNumber: String(etags.length + 1), uploadId }
    const { headers } = await client.send({ method: 'PUT', key, query, body: part.slices, signal })
    if (headers.etag === undefined)
      throw new Error(`the S3 store took part ${etags.length + 1} of ${key} without an ETag`)
    etags.push(headers.etag)
    sizeBytes += part.sizeBytes
    part.clear()
    hasMore = (await part.fill(PART_BYTES)) || part.sizeBytes > 0
  }
  return { etags, sizeBytes }
}

function completion(etags: readonly string[]): string {
  const parts = etags.map((etag, at) => `<Part><PartNumber>${at + 1}</PartNumber><ETag>${escaped(etag)}</ETag></Part>`)
  return `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`
}

/** Listens to no signal: it runs when the caller has gone. */
async function abortUpload(client: S3Client, key: string, uploadId: string): Promise<void> {
  try {
    await client.send({ method: 'DELETE', key, query: { uploadId }, ...COURTESY })
  } catch (error) {
    if (!(error instanceof S3Error && error.status === 404)) throw error
  }
}

/**
 * Aborts uploads below our prefix that began more than a day ago: their writers died. The store's clock is compared
 * with itself. Returns how many they were.
 */
export async function abortLeftovers(client: S3Client, signal: AbortSignal): Promise<number> {
  const { addresses } = client
  let aborted = 0
  let markers: Record<string, string> = {}
  for (;;) {
    const query = { uploads: '', prefix: addresses.prefix, ...markers }
    const { headers, body } = await client.send({ method: 'GET', query, signal })
    const xml = Buffer.from(body).toString('utf8')
    const nowMs = Date.parse(headers.date ?? '')
    for (const upload of elementsOf(xml, 'Upload')) {
      const [key, uploadId, initiated] = ['Key', 'UploadId', 'Initiated'].map((name) => textOf(upload, name) ?? '')
      if (addresses.nameOf(key) === undefined || !(nowMs - Date.parse(initiated) > LEFTOVER_AGE_MS)) continue
      await abortUpload(client, key, uploadId)
      aborted++
    }
    const [key, uploadId] = ['NextKeyMarker', 'NextUploadIdMarker'].map((name) => textOf(xml, name) ?? '')
    if (textOf(xml, 'IsTruncated') !== 'true' || key === '') return aborted
    markers = { 'key-marker': key, 'upload-id-marker': uploadId }
  }
}
