import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { StowageError } from '../../errors.ts'

/** The key management algorithm of JWE (RFC 7518, RFC 8037) for each type of key that secrets are sealed for. */
const ALGORITHMS: Readonly<Record<string, string>> = {
  x25519: 'ECDH-ES+A256KW',
  ec: 'ECDH-ES+A256KW',
  rsa: 'RSA-OAEP-256',
}
const RSA_BITS_MIN = 2_048

/** A public key in a request: base64url of DER, which begins with a sequence. The shortest is X25519. */
export const RECIPIENT_TEXT = '^M[\\w-]{58,4095}$'

/** The key pair for which secrets leave a server; only the holder of its private half opens them. */
export interface RecipientKey {
  /** The SHA-256 of the public key as DER, base64url. */
  readonly id: string
  readonly algorithm: string
  readonly publicKey: KeyObject
}

/**
 * A public key, or the public half of a private one: PEM, or base64url of its DER (SubjectPublicKeyInfo). Throws
 * `invalid_request` for keys of another type than X25519, EC and RSA.
 */
export function recipientKey(key: string | KeyObject): RecipientKey {
  const publicKey = typeof key === 'string' ? publicKeyOf(key) : createPublicKey(key)
  const { asymmetricKeyType = '', asymmetricKeyDetails } = publicKey
  const algorithm = Object.hasOwn(ALGORITHMS, asymmetricKeyType) ? ALGORITHMS[asymmetricKeyType] : undefined
  const bits = asymmetricKeyDetails?.modulusLength
  if (algorithm === undefined || (bits !== undefined && bits < RSA_BITS_MIN))
    throw new StowageError(
      'invalid_request',
      `secrets are sealed for keys of the types X25519, EC and RSA (of ${RSA_BITS_MIN} bits or more), and this one is ${asymmetricKeyType || 'of another type'}`,
    )
  return { id: idOf(derOf(publicKey)), algorithm, publicKey }
}

/** The id of the key that a request names, whether or not it is one. */
export function recipientId(text: string): string {
  return idOf(Buffer.from(text, 'base64url'))
}

/** The public key as a parameter of a request. */
export function recipientText({ publicKey }: RecipientKey): string {
  return derOf(publicKey).toString('base64url')
}

function publicKeyOf(text: string): KeyObject {
  try {
    return text.includes('-----BEGIN')
      ? createPublicKey(text)
      : createPublicKey({ key: Buffer.from(text, 'base64url'), format: 'der', type: 'spki' })
  } catch (cause) {
    throw new StowageError('invalid_request', 'the key for secrets is not a public key as PEM (RFC 7468)', { cause })
  }
}

function derOf(publicKey: KeyObject): Buffer {
  return publicKey.export({ format: 'der', type: 'spki' })
}

function idOf(der: Uint8Array): string {
  return createHash('sha256').update(der).digest('base64url')
}
