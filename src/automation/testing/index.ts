/// <reference types="node" preserve="true" />

/**
 * Runs of a function in a test, without a server.
 *
 * @module stowage/automation/testing
 *
 * @example
 * import { defineFunction, defineInputs, number } from 'stowage/automation'
 * import { testFunction } from 'stowage/automation/testing'
 *
 * class Inputs extends defineInputs({ heightMax: number() }) {}
 * const checker = defineFunction((context) => context.markRunSuccess('done'), Inputs)
 *
 * const run = await testFunction(checker, { inputs: { heightMax: 3 }, object: { '@walls': [{ height: 2 }] } })
 * if (run.status !== 'succeeded') throw new Error(run.message)
 */

export { testFunction, type TestedRun, type TestFunctionOptions } from './test-function.ts'
export type { TestArtifact, TestVersion } from './memory-run-backend.ts'
