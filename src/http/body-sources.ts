import { parseContentType } from '../decode/header-value.ts'
import type { UploadSource } from '../decode/wire.ts'
import type { RequestBody } from './exchange.ts'

/** An upload, byte for byte as the client spelled it. */
export function uploadSource(body: RequestBody): UploadSource {
  return sourceOf(body, body.bytes())
}

/** A list of ids, whose spelling does not matter: the result of the host's own parser also works. */
export function idListSource(body: RequestBody): UploadSource {
  return sourceOf(body, body.values())
}

function sourceOf({ type, encoding, length }: RequestBody, body: AsyncIterable<Uint8Array>): UploadSource {
  return { contentType: parseContentType(type), contentEncoding: encoding, contentLength: length, body }
}
