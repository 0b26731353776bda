import { takePlace } from '../../src/data-folder/exclusive-place.ts'

/* A process of its own that takes the place of its argument, and keeps it until it is killed. */
const { path } = JSON.parse(process.argv[2]) as { readonly path: string }
const taken = await takePlace(path)
process.send?.('release' in taken)
setInterval(() => undefined, 60_000)
