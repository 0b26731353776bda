import { propertyRuns } from '../support/runs.ts'
import { testBothDirections } from './both-directions.ts'

testBothDirections({ valuesMax: Infinity, randomValues: propertyRuns(2), seed: 1 })
