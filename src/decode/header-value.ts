/** A header's value with its parameters, such as `form-data; name="file"` (RFC 9110, section 5.6.6). */
export interface HeaderValue {
  /** In lower case; empty for an absent or empty header. */
  readonly value: string
  /** Names in lower case. */
  readonly parameters: ReadonlyMap<string, string>
}

const PARAMETER = /[ \t]*;[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^";\s]*))[ \t]*)?/gy
const ESCAPED_QUOTE = /\\(["\\])/g

/** `undefined` for a value that breaks the grammar or names a parameter twice: better refused than half understood. */
export function parseHeaderValue(text: string | undefined): HeaderValue | undefined {
  const parameters = new Map<string, string>()
  if (text === undefined) return { value: '', parameters }
  const valueEnd = text.includes(';') ? text.indexOf(';') : text.length
  let at = valueEnd
  for (const [whole, name, quotedValue, plainValue] of text.slice(valueEnd).matchAll(PARAMETER)) {
    at += whole.length
    if (name === undefined) continue
    if (parameters.has(name.toLowerCase())) return undefined
    parameters.set(name.toLowerCase(), plainValue ?? quotedValue.replace(ESCAPED_QUOTE, '$1'))
  }
  return at === text.length ? { value: text.slice(0, valueEnd).trim().toLowerCase(), parameters } : undefined
}

/**
 * The content type of a body or of a part. It is parsed once, where the headers are read; all stages use the result.
 */
export interface ContentType {
  /** The original text, for messages; empty if there is none. */
  readonly text: string
  /** The media type in lower case; empty if there is none, `undefined` if the header violates the grammar. */
  readonly mediaType: string | undefined
  /** Names in lower case. */
  readonly parameters: ReadonlyMap<string, string>
}

export function parseContentType(header: string | undefined): ContentType {
  const parsed = parseHeaderValue(header)
  return { text: header ?? '', mediaType: parsed?.value, parameters: parsed?.parameters ?? new Map() }
}
