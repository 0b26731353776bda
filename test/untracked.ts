import hooks from 'node:async_hooks'

/**
 * Loaded before the tests of a process. Node's test runner tracks every promise, so that it can name the test in which
 * an uncaught error began. This costs a tenth of the processor time of all tests. Without it, an uncaught error still
 * fails its process; `STOWAGE_TEST_TRACKING=1 npm test` and the second try of the pipeline name the test.
 */
const { createHook } = hooks
const idle = { enable: () => idle, disable: () => idle }
hooks.createHook = () => idle
await import('node:test')
hooks.createHook = createHook
