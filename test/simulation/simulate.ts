import { spawn } from 'node:child_process'
import { countOf, orUsage, readOptions } from '../../bench/options.ts'
import { type RunParts, smallest } from '../../src/simulation/shrink.ts'
import { simulate } from '../../src/simulation/index.ts'
import { simulateAutomation } from './automation/simulate.ts'
import { commandOf, WORKLOADS } from './command.ts'

/**
 * `npm run simulate -- --seeds 1000 [--from N]` makes the runs of so many seeds, and `--seed N [--servers N] [--operations 1,2] [--faults 0]` one run,
 * or what is left of it. The first run that breaks something is shrunk, unless `--as-found` is given, and told with the line that replays it, and the
 * command exits with 1. `--processes N` shares the seeds among so many processes. `--workload automation` makes runs
 * of models, versions and automations, which have seeds of their own.
 */
const USAGE = `npm run simulate -- [--seeds N] [--from N] [--processes N] [--as-found] [--workload objects|automation]
   or: npm run simulate -- --seed N [--servers N] [--operations N,N|none] [--faults N,N|none] [--workload objects|automation]`
const values = readOptions(USAGE, {
  seeds: { type: 'string', default: '1000' },
  from: { type: 'string', default: '0' },
  seed: { type: 'string' },
  servers: { type: 'string' },
  operations: { type: 'string' },
  faults: { type: 'string' },
  'as-found': { type: 'boolean', default: false },
  processes: { type: 'string', default: '1' },
  workload: { type: 'string', default: 'objects' },
})

function placesOf(option: string, list: string): readonly number[] {
  return list === 'none' ? [] : list.split(',').map((place) => countOf(option, place, 0))
}

function readParts(): Partial<RunParts> {
  const { servers, operations, faults } = values
  return {
    ...(servers === undefined ? {} : { servers: countOf('servers', servers) }),
    ...(operations === undefined ? {} : { operations: placesOf('operations', operations) }),
    ...(faults === undefined ? {} : { faults: placesOf('faults', faults) }),
  }
}

function readWorkload(): (typeof WORKLOADS)[number] {
  const workload = WORKLOADS.find((known) => known === values.workload)
  if (workload !== undefined) return workload
  throw new RangeError(`--workload is "${values.workload}"; it must be ${WORKLOADS.join(' or ')}`)
}

/** Which seeds, and in how many processes. */
function readRange(): { readonly first: number; readonly count: number; readonly processes: number } {
  const { seed, from, seeds, processes } = values
  if (seed !== undefined) return { first: countOf('seed', seed, 0), count: 1, processes: 1 }
  return {
    first: countOf('from', from, 0),
    count: countOf('seeds', seeds, 0),
    processes: countOf('processes', processes),
  }
}

const chosen = orUsage(USAGE, readParts)
const { first, count, processes } = orUsage(USAGE, readRange)
const workload = orUsage(USAGE, readWorkload)

/** The outcome of one run. */
type Simulated = Awaited<ReturnType<typeof simulate | typeof simulateAutomation>>

function simulateOne(seed: number, parts: Partial<RunParts>): Promise<Simulated> {
  return workload === 'automation' ? simulateAutomation({ seed, ...parts }) : simulate({ seed, ...parts })
}

process.on('unhandledRejection', (reason) => {
  process.stderr.write(`seed ${seed}: a rejection that nobody handles: ${String(reason)}\n`)
  process.exit(1)
})

/** The exit code of this command for the seeds from there on, in a process of its own. */
function runElsewhere(from: number, seeds: number): Promise<number> {
  const range = ['--workload', values.workload, '--from', String(from), '--seeds', String(seeds)]
  const args = [...process.execArgv, process.argv[1], ...range]
  const child = spawn(process.execPath, values['as-found'] ? [...args, '--as-found'] : args, { stdio: 'inherit' })
  return new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)))
}

if (processes > 1) {
  const share = Math.ceil(count / processes)
  const parts = Array.from({ length: processes }, (_, at) => ({ from: first + at * share, left: count - at * share }))
  const codes = await Promise.all(parts.map(({ from, left }) => runElsewhere(from, Math.min(share, left))))
  process.exit(Math.max(...codes))
}
const beganAtMs = performance.now()
const fired = new Map<string, number>()
let [steps, calls] = [0, 0]
let seed = first
for (; seed < first + count; seed++) {
  const simulation = await simulateOne(seed, chosen)
  steps += simulation.steps
  calls += simulation.calls
  for (const kind of simulation.fired) fired.set(kind, (fired.get(kind) ?? 0) + 1)
  if (simulation.violation === undefined) continue
  process.stderr.write(`seed ${seed}: ${simulation.violation}\n${commandOf(simulation, workload)}\n`)
  if (values.seed === undefined && !values['as-found']) {
    const smaller = await smallest<Simulated>(simulation, (parts) => simulateOne(simulation.seed, parts))
    process.stderr.write(`smaller: ${smaller.violation}\n${commandOf(smaller, workload)}\n`)
  }
  process.exit(1)
}
const seconds = ((performance.now() - beganAtMs) / 1_000).toFixed(1)
const faults = [...fired].map(([kind, runs]) => `${kind} in ${runs}`).join(', ')
process.stdout.write(`${count} runs, ${steps} steps, ${calls} calls to the storage, ${seconds} s; ${faults}\n`)
