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

const encoder = new TextEncoder()
/** Texts that are made bytes at a time: all of a batch would be megabytes. */
const PIECE_CHARACTERS = 65_536

/** The texts as a JSON array, which is the body of a request. */
export async function arrayBody(
  texts: readonly string[],
  { hasDeltas, form }: { readonly hasDeltas: boolean; readonly form: BodyForm | undefined },
): Promise<UploadBody & { readonly jsonBytes: number }> {
  let jsonBytes = 0
  function* counted(): Generator<Uint8Array<ArrayBuffer>> {
    for (const piece of arrayPieces(texts)) {
      jsonBytes += piece.length
      yield piece
    }
  }
  const file = await gzip(counted())
  const bodyBytes = file.size
  if (hasDeltas)
    return {
      headers: { 'Content-Type': DELTA_MEDIA_TYPE, 'Content-Encoding': 'gzip' },
      body: file,
      bodyBytes,
      jsonBytes,
    }
  if (form !== 'multipart') return { headers: { 'Content-Type': 'application/gzip' }, body: file, bodyBytes, jsonBytes }
  const body = new FormData()
  body.append('file', new Blob([file], { type: 'application/gzip' }), 'batch.json.gz')
  return { body, bodyBytes, jsonBytes }
}

function* arrayPieces(texts: readonly string[]): Generator<Uint8Array<ArrayBuffer>> {
  let piece = '['
  for (const [index, text] of texts.entries()) {
    piece += index === 0 ? text : `,${text}`
    if (piece.length < PIECE_CHARACTERS) continue
    yield encoder.encode(piece)
    piece = ''
  }
  yield encoder.encode(`${piece}]`)
}
