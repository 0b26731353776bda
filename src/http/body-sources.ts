import type { UploadSource } from '../decode/wire.ts'
import type { RequestBody } from './exchange.ts'

/** An upload, byte for byte as the client spelled it. */
export function uploadSource(body: RequestBody): UploadSource {
  return { contentType: body.type, contentEncoding: body.encoding, contentLength: body.length, body: body.bytes() }
}

/** A list of ids, whose spelling does not matter: what the host's own parser made of it does too. */
export function idListSource(body: RequestBody): UploadSource {
  return { contentType: body.type, contentEncoding: body.encoding, contentLength: body.length, body: body.values() }
}
