import type { ObjectCursor } from '../../object/graph-store.ts'

/** The text of a cursor: numbers in hex, and the id of the point at which the run began. */
export const CURSOR_TEXT =
  '^[0-9a-f]{1,8}\\.[0-9a-f]{1,12}\\.[0-9a-f]{1,8}\\.[0-9a-f]{1,12}\\.[0-9a-f]{1,8}\\.[0-9a-f]{1,12}\\.[0-9a-f]{16}$'

const CURSOR = new RegExp(CURSOR_TEXT)

/** `undefined` if the text is not that of a cursor. */
export function parseCursor(text: string): ObjectCursor | undefined {
  if (!CURSOR.test(text)) return undefined
  const parts = text.split('.')
  const [generation, sequence, ordinal, layout, epoch, number] = parts.map((part) => Number.parseInt(part, 16))
  return { generation, sequence, ordinal, layout, epoch, point: { number, id: parts[6] } }
}

export function cursorText({ generation, sequence, ordinal, layout, epoch, point }: ObjectCursor): string {
  const numbers = [generation, sequence, ordinal, layout, epoch, point.number]
  return [...numbers.map((part) => part.toString(16)), point.id].join('.')
}
