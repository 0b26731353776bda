import { keepYoungSpace } from '../../src/cli/server/heap.ts'

/** Starts `archive-server.ts` as `stowage serve` starts: its modules do not enlarge V8's space of young objects. */
keepYoungSpace()
await import('./archive-server.ts')
