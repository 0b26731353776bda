import { gzipSync } from 'node:zlib'
import type { Recorded } from './replay.ts'

/* The requests of the .NET SDK: what it sets itself, in the order and spelling in which `HttpClient` and `MultipartFormDataContent` write it. */

const BOUNDARY = '7b0d3b1e-4d0b-4a8f-9a51-0e6d2c9f6a10'
const AUTHORIZATION = 'Authorization: Bearer any'
const MULTIPART_TYPE = `Content-Type: multipart/form-data; boundary="${BOUNDARY}"`
const JSON_TYPE = 'Content-Type: application/json; charset=utf-8'
/** About what `HttpClient` writes at a time. */
const CHUNK_BYTES = 4_096

/** A part without quotes around its name; `filename*` (RFC 5987) comes from `MultipartFormDataContent` itself. */
function partHead(name: string, type: string, encoding: string): string {
  return `Content-Type: ${type}\r\n${encoding}Content-Disposition: form-data; name=${name}; filename=${name}; filename*=utf-8''${name}\r\n\r\n`
}

function multipart(parts: readonly (readonly [head: string, content: Uint8Array])[]): Buffer {
  const pieces = parts.flatMap(([head, content], n) => [
    Buffer.from(`${n === 0 ? '' : '\r\n'}--${BOUNDARY}\r\n${head}`),
    content,
  ])
  return Buffer.concat([...pieces, Buffer.from(`\r\n--${BOUNDARY}--\r\n`)])
}

function inChunks(body: Buffer): Buffer[] {
  return Array.from({ length: Math.ceil(body.length / CHUNK_BYTES) }, (_, n) =>
    body.subarray(n * CHUNK_BYTES, (n + 1) * CHUNK_BYTES),
  )
}

function list(path: string, payload: object, headers: readonly string[]): Recorded {
  return {
    method: 'POST',
    path,
    headers: [...headers, AUTHORIZATION, 'Accept-Encoding: gzip', JSON_TYPE],
    body: [JSON.stringify(payload)],
  }
}

/**
 * One part for each array, as the SDK compresses while it sends: the length is not known, and a part says its encoding
 * beside its type.
 */
export function gzippedUpload(project: string, arrays: readonly string[]): Recorded {
  const parts = arrays.map(
    (json, n) =>
      [
        partHead(`batch-${n + 1}`, 'application/gzip', 'Content-Encoding: gzip\r\n'),
        gzipSync(json, { level: 1 }),
      ] as const,
  )
  const headers = [AUTHORIZATION, 'Accept-Encoding: gzip', 'Transfer-Encoding: chunked', MULTIPART_TYPE]
  return { method: 'POST', path: `/objects/${project}`, headers, body: inChunks(multipart(parts)) }
}

/** The older SDK with compression switched off: the length is known. */
export function plainUpload(project: string, arrays: readonly string[]): Recorded {
  const parts = arrays.map(
    (json, n) => [partHead(`batch-${n + 1}`, 'text/plain; charset=utf-8', ''), Buffer.from(json)] as const,
  )
  return {
    method: 'POST',
    path: `/objects/${project}`,
    headers: [AUTHORIZATION, 'Accept-Encoding: gzip', MULTIPART_TYPE],
    body: [multipart(parts)],
  }
}

export function single(project: string, id: string): Recorded {
  return { method: 'GET', path: `/objects/${project}/${id}/single`, headers: [AUTHORIZATION, 'Accept-Encoding: gzip'] }
}

export function diff(project: string, ids: readonly string[]): Recorded {
  return list(`/api/diff/${project}`, { objects: JSON.stringify(ids) }, [])
}

/** The current SDK; the slash at the end is its own. */
export function objectStream(project: string, ids: readonly string[]): Recorded {
  return list(`/api/v2/projects/${project}/object-stream/`, { objectIds: ids }, [
    'Accept: text/plain',
    'x-speckle-object-stream-heartbeats: true',
  ])
}

/** The older SDK. */
export function getObjects(project: string, ids: readonly string[]): Recorded {
  return list(`/api/getobjects/${project}`, { objects: JSON.stringify(ids) }, ['Accept: text/plain'])
}
