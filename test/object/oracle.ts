import { createHash } from 'node:crypto'

/**
 * What an inspection must find in an element, worked out the slow way: with `JSON.parse`, regular expressions and
 * recursion.
 */
export type Expected =
  | { readonly refused: 'invalid_json' | 'invalid_utf8' | 'invalid_object' | 'invalid_id' }
  | {
      readonly id: string
      readonly json: string
      readonly assigned: boolean
      readonly references: readonly string[]
      readonly claims: readonly string[]
    }

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const UNFIT_FOR_ID = /[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}]/u

export function expectedOf(bytes: Uint8Array): Expected {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return { refused: 'invalid_utf8' }
  }
  let parsed: Json
  try {
    parsed = JSON.parse(text) as Json
  } catch {
    return { refused: 'invalid_json' }
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return { refused: 'invalid_object' }
  return expectedOfObject(text.trim(), parsed)
}

/** Whether the id can be one, by the written rule. */
export function canBeId(id: string): boolean {
  return !UNFIT_FOR_ID.test(id) && Buffer.byteLength(id) >= 1 && Buffer.byteLength(id) <= 512
}

function expectedOfObject(text: string, parsed: { [key: string]: Json }): Expected {
  const json = inOneLine(text)
  const closure = Object.hasOwn(parsed, '__closure') ? parsed.__closure : null
  const claims =
    typeof closure === 'object' && closure !== null && !Array.isArray(closure)
      ? Object.keys(closure).filter(canBeId)
      : []
  const references = referencesIn(text).filter(canBeId)
  if (!Object.hasOwn(parsed, 'id')) {
    const id = createHash('sha256').update(json).digest('hex').slice(0, 32)
    const member = `{"id":"${id}"${Object.keys(parsed).length > 0 ? ',' : ''}`
    return { id, json: member + json.slice(1), assigned: true, references, claims }
  }
  if (typeof parsed.id !== 'string') return { refused: 'invalid_object' }
  return canBeId(parsed.id) ? { id: parsed.id, json, assigned: false, references, claims } : { refused: 'invalid_id' }
}

/** The three exceptions to "the text stays", by tokens: a string, or a run of white space outside of strings. */
function inOneLine(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|[ \t\r\n]+/gs, (token) => {
    if (!token.startsWith('"')) return /[\t\r\n]/.test(token) ? '' : token
    return token.replaceAll('\u0085', '\\u0085').replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
  })
}

/** Values of every `referencedId`, also of those that a later member of the same name hides from `JSON.parse`. */
function referencesIn(text: string): string[] {
  const found: string[] = []
  for (const [, key, value] of text.matchAll(/("(?:[^"\\]|\\.)*")(?:[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*"))?/gs)) {
    if (value !== undefined && JSON.parse(key) === 'referencedId') found.push(JSON.parse(value) as string)
  }
  return found
}
