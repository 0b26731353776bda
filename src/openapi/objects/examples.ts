import { crc32 } from '../../delta/crc32.ts'

/** One small model, which all examples of the area are about. */

export const PROJECT_ID = 'demo'
export const ROOT_ID = '9c1185a5c5e9fc54612808977ee8f548'
export const WALL_ID = '0cc175b9c0f1b6a831c399e269772661'
export const DOOR_ID = '92eb5ffee6ae2fec3ad71c777531578f'
export const UNKNOWN_ID = '4a8a08f09d37b73795649038408b5f33'

/** An object as clients make them. */
export interface ExampleObject {
  readonly id: string
  readonly [member: string]: unknown
}

export const WALL: ExampleObject = { id: WALL_ID, service_type: 'Wall', totalChildrenCount: 0, numbers: [0, 2.5, 4] }
export const DOOR: ExampleObject = { id: DOOR_ID, service_type: 'Door', totalChildrenCount: 0, numbers: [0.9, 2.1] }
export const ROOT: ExampleObject = {
  id: ROOT_ID,
  service_type: 'Building',
  totalChildrenCount: 2,
  elements: [{ referencedId: WALL_ID }, { referencedId: DOOR_ID }],
  __closure: { [WALL_ID]: 1, [DOOR_ID]: 1 },
}

const DOOR_TEXT: string = JSON.stringify(DOOR)
const SECOND_DOOR_ID = '8fa14cdd754f91cc6554c9e71929cce7'
/** Bytes before the door's id, and behind it. */
const BEFORE_ID: number = DOOR_TEXT.indexOf(DOOR_ID)
const BEHIND_ID: number = DOOR_TEXT.length - BEFORE_ID - DOOR_ID.length

/** Another door, as a delta on the text of the first one: everything but the id is copied. */
export const SECOND_DOOR_DELTA: readonly (string | number)[] = [
  DOOR_ID,
  crc32(new TextEncoder().encode(DOOR_TEXT.replace(DOOR_ID, SECOND_DOOR_ID))),
  0,
  BEFORE_ID,
  SECOND_DOOR_ID,
  DOOR_ID.length,
  BEHIND_ID,
  '',
]

/** Objects as lines: id, tab, JSON text, line feed. */
export function lines(objects: readonly ExampleObject[]): string {
  return objects.map((object) => `${object.id}\t${JSON.stringify(object)}\n`).join('')
}
