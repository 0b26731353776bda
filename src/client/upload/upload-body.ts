import { DELTA_MEDIA_TYPE } from '../../delta/delta.ts'
import { gzip } from '../common/gzip.ts'

/** The form of a batch: the body as a gzip file, or the only part of a multipart form. */
type BodyForm = 'gzip' | 'multipart'

/** A batch as the body of a request. */
export interface UploadBody {
  readonly headers?: Record<string, string>
  readonly body: Blob | FormData
  readonly bodyBytes: number
}

/** A JSON array as the body of a request. */
export async function arrayBody(
  json: Uint8Array<ArrayBuffer>,
  { hasDeltas, form }: { readonly hasDeltas: boolean; readonly form: BodyForm | undefined },
): Promise<UploadBody> {
  const file = await gzip(json)
  const bodyBytes = file.size
  if (hasDeltas)
    return { headers: { 'Content-Type': DELTA_MEDIA_TYPE, 'Content-Encoding': 'gzip' }, body: file, bodyBytes }
  if (form !== 'multipart') return { headers: { 'Content-Type': 'application/gzip' }, body: file, bodyBytes }
  const body = new FormData()
  body.append('file', new Blob([file], { type: 'application/gzip' }), 'batch.json.gz')
  return { body, bodyBytes }
}
