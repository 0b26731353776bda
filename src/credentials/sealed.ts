import { crc32 } from 'node:zlib'

const SEALED = /^([^\n]*)\n([0-9a-f]{8})\n$/

/** One line and its CRC-32, so that a damaged small file is an error, and never another key or other rights. */
export function seal(line: string): string {
  return `${line}\n${checksum(line)}\n`
}

/** The line; `undefined` for a text that `seal` did not make. */
export function unseal(text: string): string | undefined {
  const [, line, stored] = SEALED.exec(text) ?? []
  return line !== undefined && stored === checksum(line) ? line : undefined
}

function checksum(line: string): string {
  return crc32(line).toString(16).padStart(8, '0')
}
