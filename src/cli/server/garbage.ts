import { setFlagsFromString } from 'node:v8'

/** Old garbage is collected when the heap has grown by this part, or by the least step that V8 makes. */
const HEAP_GROWTH_PERCENT = 25

/**
 * Lets V8 collect garbage sooner. Otherwise a server under load keeps buffers of answers that were sent long ago: V8
 * waits until its heap has grown to twice what is in use, or until buffers of 64 MB have come. Live objects of a server
 * take some 30 MB, so collecting them more often costs little.
 */
export function collectGarbageSooner(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`)
}
