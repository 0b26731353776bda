import { memoryRun } from './memory-run.ts'
import { runBackendSuite } from './run-backend-suite.ts'

runBackendSuite('memory', () => memoryRun())
