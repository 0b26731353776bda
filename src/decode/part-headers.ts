import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import { isFileType } from './content-format.ts'
import { type ContentType, parseContentType, parseHeaderValue } from './header-value.ts'

/** Names that real clients use for files that they send without a file name. */
const FILE_NAMES: ReadonlySet<string> = new Set(['file', 'object-batch'])
/**
 * The transfer encodings that a part may have; any other would need decoding that nobody uses (RFC 7578, section 4.7).
 */
const PLAIN_ENCODINGS: ReadonlySet<string> = new Set(['', '7bit', '8bit', 'binary'])
/** Of each header line: the colon, the space and the line end. */
const LINE_FRAME_BYTES = 4

/** As the multipart parser returns them: names in lower case, values with one character for each byte. */
export type RawPartHeaders = Readonly<Record<string, readonly string[]>>

export interface PartHeaders {
  readonly name: string
  readonly filename: string | undefined
  readonly contentType: ContentType
  readonly contentEncoding: string | undefined
}

/**
 * The headers of one file part. Throws `part_header_too_large`, and `invalid_multipart` for a part that is not a file
 * or cannot be understood.
 */
export function readPartHeaders(raw: RawPartHeaders, what: string, bytesMax: number): PartHeaders {
  if (headerBytes(raw) > bytesMax) throw partHeaderTooLarge(what, bytesMax)
  const disposition = single(raw, 'content-disposition', what)
  if (disposition === undefined) {
    throw invalidMultipart(
      `${what} has no Content-Disposition header; it must have one of the form form-data; name="file"`,
    )
  }
  const form = parseHeaderValue(utf8(disposition))
  const name = form?.parameters.get('name')
  if (form?.value !== 'form-data' || name === undefined) {
    throw invalidMultipart(
      `${what} has the Content-Disposition ${quoted(utf8(disposition))}; it must be of the form form-data; name="file"`,
    )
  }
  const filename = form.parameters.get('filename') ?? form.parameters.get('filename*')
  const contentType = parseContentType(single(raw, 'content-type', what))
  if (filename === undefined && !FILE_NAMES.has(name) && (contentType.text === '' || !isFileType(contentType))) {
    throw invalidMultipart(
      `${what} is the form field ${quoted(name)}, not a file; every part must be a file, best named "file"`,
    )
  }
  checkTransferEncoding(single(raw, 'content-transfer-encoding', what), what)
  return { name, filename, contentType, contentEncoding: single(raw, 'content-encoding', what) }
}

export function partHeaderTooLarge(what: string, bytesMax: number): StowageError {
  return new StowageError(
    'part_header_too_large',
    `the headers of ${what} are larger than the limit of ${bytesMax} bytes`,
  )
}

export function invalidMultipart(problem: string): StowageError {
  return new StowageError('invalid_multipart', `the multipart body is not valid (RFC 7578): ${problem}`)
}

function headerBytes(raw: RawPartHeaders): number {
  let bytes = 0
  for (const [name, values] of Object.entries(raw)) {
    for (const value of values) bytes += name.length + value.length + LINE_FRAME_BYTES
  }
  return bytes
}

function single(raw: RawPartHeaders, name: string, what: string): string | undefined {
  const values = raw[name] ?? []
  if (values.length > 1)
    throw invalidMultipart(`${what} has the header ${name} ${values.length} times; it must have it once`)
  return values[0]
}

function checkTransferEncoding(encoding: string | undefined, what: string): void {
  if (PLAIN_ENCODINGS.has((encoding ?? '').trim().toLowerCase())) return
  throw invalidMultipart(
    `${what} has the Content-Transfer-Encoding ${quoted(encoding ?? '')}; it must be sent unencoded (binary)`,
  )
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString('utf8')
}
