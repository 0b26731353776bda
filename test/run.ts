import { runCompiled } from './run-compiled.ts'

/** `npm test [-- NAME...]` runs the tests: see `runner.ts`. */
await runCompiled(new URL('./runner.ts', import.meta.url), process.argv.slice(2))
