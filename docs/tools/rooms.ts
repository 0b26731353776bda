import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { renderRooms, ROOMS_SECTION } from '../../test/support/rooms.ts'

/** Renders the list of folders into `ARCHITECTURE.md`. */
const page: string = join(import.meta.dirname, '..', '..', 'ARCHITECTURE.md')
writeFileSync(page, readFileSync(page, 'utf8').replace(ROOMS_SECTION, renderRooms))
