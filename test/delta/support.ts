import { hash } from 'node:crypto'
import { DeltaEncoder } from '../../src/delta/encode.ts'

export function encodeDelta(baseId: string, base: string, text: string, sliceBytes = 65_536): string | undefined {
  const encoder = new DeltaEncoder(baseId, Buffer.from(base), Buffer.from(text))
  while (!encoder.advance(sliceBytes));
  return encoder.take()
}

export function hexId(seed: number | string): string {
  return hash('sha256', String(seed), 'hex').slice(0, 32)
}

/** An object that counts so many others below itself; those that `isOther` names are others than usual. */
export function closureText(count: number, isOther: (at: number) => boolean): string {
  return `{"id":"0","__closure":{${Array.from({ length: count }, (_, at) => `"${hexId(isOther(at) ? `other ${at}` : at)}":${at % 3}`).join()}}}`
}
