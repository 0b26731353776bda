import { randomBytes } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { postgresRecords } from '../../adapters/postgres/index.ts'
import { s3Blobs, type S3BlobsOptions } from '../../adapters/s3/index.ts'
import { combinedBackend, type StorageBackend } from '../../src/storage/index.ts'

/*
 * `STOWAGE_TEST_SHARED` puts tests of one service on three services over one PostgreSQL and one S3 store, and each call
 * goes to the next of them. `test/engines/same-tests.ts` sets it.
 */

/** Where the engines are, as JSON in `STOWAGE_TEST_SHARED`. */
export interface SharedEngines {
  readonly connectionString: string
  readonly s3: S3BlobsOptions
  /** The file to which each process of tests appends a line of `SharedUse`, as JSON. */
  readonly useFile: string
}

/** What a process of tests did with the engines. */
export interface SharedUse {
  /** How many storages it made, with three services for each. */
  storages: number
  /** How many calls went to each of the three. */
  readonly calls: number[]
  /** The tests that kept one service, each with the reason. */
  readonly alone: string[]
}

const SERVERS = 3
const CONNECTIONS_MAX = 2
/** These are called on every service. */
const TOGETHER: ReadonlySet<string | symbol> = new Set(['ready', 'close', 'idle', 'register', Symbol.asyncDispose])
/** These return a handle, which goes on rotating. */
const HANDLES: ReadonlySet<string | symbol> = new Set(['project'])

const setting = process.env.STOWAGE_TEST_SHARED
export const SHARED_ENGINES: SharedEngines | undefined =
  setting === undefined ? undefined : (JSON.parse(setting) as SharedEngines)

const use: SharedUse = { storages: 0, calls: Array<number>(SERVERS).fill(0), alone: [] }
let calls = 0
if (SHARED_ENGINES !== undefined)
  process.on('exit', () => appendFileSync(SHARED_ENGINES.useFile, `${JSON.stringify(use)}\n`))

/** A test that needs one service, or one process, by its nature. */
export interface Alone {
  readonly test: string
  readonly reason: string
  /** The storage of the test; otherwise one in memory. */
  readonly backend?: StorageBackend
}

/**
 * What `open` makes over a storage: in memory, or the test's own. With shared engines it is made three times over one
 * place, and what is returned passes each call to the next one.
 */
export function openServers<T extends object>(open: (backend: StorageBackend) => T, alone?: Alone): T {
  if (SHARED_ENGINES === undefined || alone !== undefined) {
    if (alone !== undefined) use.alone.push(`${alone.test}: ${alone.reason}`)
    return open(alone?.backend ?? memoryBackend())
  }
  return rotating(newSharedStorage(SHARED_ENGINES).map(open))
}

/** An empty storage, opened once for each server. */
export function newSharedStorage({ connectionString, s3 }: SharedEngines): readonly StorageBackend[] {
  use.storages++
  const name = `test_${randomBytes(8).toString('hex')}`
  return Array.from({ length: SERVERS }, () =>
    combinedBackend({
      records: postgresRecords({ connectionString, schema: name, connectionsMax: CONNECTIONS_MAX }),
      blobs: s3Blobs({ ...s3, prefix: `${name}/` }),
    }),
  )
}

/** A call went to this service. */
export function noteCall(at: number): void {
  use.calls[at]++
}

/** One object that stands for all targets, which are alike. */
function rotating<T extends object>(targets: readonly T[]): T {
  return new Proxy(targets[0], {
    get: (first, name) => {
      const value: unknown = Reflect.get(first, name, first)
      if (typeof value === 'function') return (...args: readonly unknown[]) => called(targets, name, args)
      return isPlainHandle(value) ? rotating(targets.map((target) => Reflect.get(target, name) as object)) : value
    },
  })
}

function called(targets: readonly object[], name: string | symbol, args: readonly unknown[]): unknown {
  const call = (target: object): unknown =>
    (Reflect.get(target, name) as (...args: readonly unknown[]) => unknown).apply(target, [...args])
  if (HANDLES.has(name)) return rotating(targets.map((target) => call(target) as object))
  if (!TOGETHER.has(name)) {
    const at = calls++ % targets.length
    noteCall(at)
    return call(targets[at])
  }
  const results = targets.map(call)
  return results[0] instanceof Promise ? Promise.all(results).then(([first]) => first) : results[0]
}

function isPlainHandle(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
