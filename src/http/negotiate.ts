import Negotiator from 'negotiator'
import { StowageError } from '../errors.ts'

export type Format = 'json' | 'text'
export type Coding = 'gzip' | 'identity'

export const MEDIA_TYPES: { readonly [F in Format]: string } = {
  json: 'application/json; charset=utf-8',
  text: 'text/plain; charset=utf-8',
}

const CODINGS: readonly Coding[] = ['gzip', 'identity']
const FORMATS: { readonly [type: string]: Format } = { [MEDIA_TYPES.json]: 'json', [MEDIA_TYPES.text]: 'text' }

/**
 * The format that `Accept` (RFC 9110 section 12.5.1) likes best; JSON without the header and in a tie. Throws
 * `not_acceptable`.
 */
export function negotiateFormat(headers: Headers): Format {
  const accept = headers.get('accept')?.trim() ?? ''
  if (accept === '') return 'json'
  const [best] = new Negotiator({ headers: { accept } }).mediaTypes(Object.keys(FORMATS))
  if (best === undefined)
    throw new StowageError(
      'not_acceptable',
      'Accept allows neither application/json nor text/plain, the two available types',
    )
  return FORMATS[best]
}

/**
 * The coding that `Accept-Encoding` (RFC 9110 section 12.5.3) likes best; gzip in a tie, identity without the header.
 * Throws `not_acceptable`.
 */
export function negotiateCoding(headers: Headers): Coding {
  const [best] = accepted(headers).encodings(CODINGS, { preferred: ['gzip'] })
  if (best === undefined)
    throw new StowageError(
      'not_acceptable',
      'Accept-Encoding allows neither gzip nor identity, the two available codings',
    )
  return best
}

/** Whether uncompressed bytes are acceptable, if compressing them would gain nothing. */
export function acceptsIdentity(headers: Headers): boolean {
  return accepted(headers).encodings(CODINGS).includes('identity')
}

/** Its types omit the option that breaks ties, which the library has since 1.0. */
interface EncodingNegotiator {
  encodings(available: readonly Coding[], options?: { readonly preferred: readonly Coding[] }): readonly Coding[]
}

function accepted(headers: Headers): EncodingNegotiator {
  return new Negotiator({
    headers: { 'accept-encoding': headers.get('accept-encoding') ?? '' },
  }) as unknown as EncodingNegotiator
}
