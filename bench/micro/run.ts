import Benchmark from 'benchmark'
import { MB, round } from '../measure.ts'
import { prepareInput } from './input.ts'
import { createSteps, type Step } from './steps.ts'

/*
 * `npm run bench:micro [-- NAME...]`: the inner loops of the way in and the way out, each alone, in MB of JSON a second.
 * For finding out what a change does to one of them; releases are judged by the macro benchmark.
 */

const OBJECTS = 6_000
const names = process.argv.slice(2)

const input = await prepareInput(OBJECTS)
const suite = new Benchmark.Suite()
for (const step of createSteps(input))
  if (names.length === 0 || names.some((name) => step.name.includes(name))) addStep(suite, step)
console.log(`${OBJECTS} objects, ${round(input.json.length / MB)} MB of JSON`)
suite.on('cycle', (event: Benchmark.Event) => console.log(report(event.target))).run({ async: true })

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
  return `  ${(target.name ?? '').padEnd(32)} ${round(input.json.length / MB / mean).padStart(6)} MB/s +- ${rme.toFixed(1)} %`
}
