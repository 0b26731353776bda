import Benchmark from 'benchmark'
import { MB, round } from '../measure.ts'
import { prepareInput } from './input.ts'
import { createBackendSteps } from './backend-steps.ts'
import { createFormatSteps } from './format-steps.ts'
import { createSteps, type Step } from './steps.ts'

/*
 * `npm run bench:micro [-- NAME...]`: the inner loops of the way in and the way out, each alone, and a whole service in
 * this process on each embedded backend.
 * For finding out what a change does to one of them; releases are judged by the macro benchmark.
 */

const OBJECTS = 6_000
const names = process.argv.slice(2)

const input = await prepareInput(OBJECTS)
const suite = new Benchmark.Suite()
const backends = await createBackendSteps(input)
const steps = [...createSteps(input), ...createFormatSteps(input), ...backends.steps].filter(
  ({ name }) => names.length === 0 || names.some((part) => name.includes(part)),
)
for (const step of steps) addStep(suite, step)
console.log(`${OBJECTS} objects, ${round(input.json.length / MB)} MB of JSON`)
suite
  .on('cycle', (event: Benchmark.Event) => console.log(report(event.target)))
  .on('complete', () => void backends.close())
  .run({ async: true })

function addStep(to: Benchmark.Suite, step: Step): void {
  to.add(step.name, {
    defer: true,
    fn: (deferred: Benchmark.Deferred) => {
      step.run().then(
        () => deferred.resolve(),
        (error: unknown) => {
          console.error(error)
          process.exit(1)
        },
      )
    },
  })
}

function report(target: Benchmark.Target): string {
  const { mean, rme } = (target as Benchmark.Target & Pick<Benchmark, 'stats'>).stats
  const name = target.name ?? ''
  const { amount = input.json.length / MB, unit = 'MB/s' } = steps.find((step) => step.name === name) ?? {}
  return `  ${name.padEnd(36)} ${round(amount / mean).padStart(8)} ${unit} +- ${rme.toFixed(1)} %`
}
