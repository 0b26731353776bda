/// <reference types="node" preserve="true" />

export { testFunction, type TestedRun, type TestFunctionOptions } from './test-function.ts'
export type { TestArtifact, TestVersion } from './memory-run-backend.ts'
