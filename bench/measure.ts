import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Several measurements of one thing. */
export interface Sample {
  readonly median: number
  readonly min: number
  readonly max: number
}

export interface Row {
  readonly what: string
  readonly value: string
  /** The thing that it is compared with, and the ratio that is wanted. */
  readonly reference?: string
  readonly target?: string
  readonly met?: boolean
}

export const MB = 1_048_576

const run = promisify(execFile)

export function sample(values: readonly number[]): Sample {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const median = sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  return { median, min: sorted[0], max: sorted[sorted.length - 1] }
}

/** Seconds that a program takes, its start included. What it prints is thrown away. */
export async function timeProgram(program: string, args: readonly string[]): Promise<number> {
  const started = performance.now()
  await run('sh', ['-c', '"$0" "$@" > /dev/null', program, ...args])
  return (performance.now() - started) / 1_000
}

export async function repeat<T>(times: number, measure: (round: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let round = 0; round < times; round++) results.push(await measure(round))
  return results
}

/** `median (min to max) unit`. */
export function describe({ median, min, max }: Sample, unit: string): string {
  return `${round(median)} (${round(min)} to ${round(max)}) ${unit}`
}

/** A number with about three digits. */
export function round(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3)
}

export function printRows(title: string, rows: readonly Row[]): void {
  console.log(`\n${title}`)
  const width = Math.max(...rows.map(({ what }) => what.length))
  for (const { what, value, reference, target, met } of rows) {
    const verdict = met === undefined ? '' : met ? ' [met]' : ' [NOT MET]'
    console.log(
      `  ${what.padEnd(width)}  ${value}${reference === undefined ? '' : `; ${reference}`}${target === undefined ? '' : `; target ${target}${verdict}`}`,
    )
  }
}
