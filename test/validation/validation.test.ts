import { testBothDirections } from './both-directions.ts'

testBothDirections({ valuesMax: 1, randomValues: 0, seed: 1 })
