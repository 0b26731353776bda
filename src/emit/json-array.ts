import { StowageError } from '../errors.ts'
import type { ReusedMemory } from '../object/selection.ts'

const TAB = 0x09
const LF = 0x0a
const COMMA = 0x2c
const OPEN = 0x5b
const CLOSE = Uint8Array.of(0x5d)
const EMPTY_ARRAY = Uint8Array.of(OPEN, 0x5d)

/**
 * The JSON array of the objects whose lines `<id> TAB <json> LF` come in `lines`, whole lines in each buffer. Every
 * object is its JSON text after one separator: `[` before the first, `,` before the others. `]` ends the array. With
 * `first: false` the array is continued, so its first object follows a comma. What the lines need no more is given back
 * to `memory`. Throws `corrupt_data` for anything other than such lines.
 */
export async function* jsonArray(
  lines: AsyncIterable<Uint8Array>,
  options: { readonly first: boolean; readonly memory?: ReusedMemory | undefined },
): AsyncGenerator<Uint8Array> {
  let isFirst = options.first
  for await (const buffer of lines) {
    if (buffer.length === 0) continue
    const elements = jsonElements(buffer, isFirst)
    options.memory?.giveBack(buffer.subarray(elements.length))
    yield elements
    isFirst = false
  }
  yield isFirst ? EMPTY_ARRAY : CLOSE
}

/**
 * The lines are closed up in place: moving costs less than a view of each text would, and another buffer costs another
 * collection. An id holds no TAB or LF and a JSON text no LF, so that each TAB becomes the separator and nothing is
 * longer than before.
 */
function jsonElements(lines: Uint8Array, isFirst: boolean): Uint8Array {
  const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength)
  let to = 0
  for (let at = 0; at < bytes.length;) {
    const tab = bytes.indexOf(TAB, at)
    const end = bytes.indexOf(LF, at)
    if (tab === -1 || end < tab)
      throw new StowageError('corrupt_data', 'a stored line is not an id, a tab, a JSON text and a line feed')
    bytes[tab] = COMMA
    bytes.copyWithin(to, tab, end)
    to += end - tab
    at = end + 1
  }
  if (isFirst) bytes[0] = OPEN
  return bytes.subarray(0, to)
}
