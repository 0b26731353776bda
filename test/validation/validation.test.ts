import { testBothDirections } from './both-directions.ts'

testBothDirections({ valuesMax: 2, randomValues: 0, seed: 1 })
