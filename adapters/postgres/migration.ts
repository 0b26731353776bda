import type { Connection } from './connections.ts'
import { quoted, SCHEMA_STEPS, type SchemaStep } from './schema.ts'

/*
 * Brings a schema to the version of this release, step by step: each step is one transaction under a lock, so servers
 * that start at once take turns, and one that dies leaves a whole version.
 */

/** Any number that other programs do not use; the second half of the lock is the name of the schema. */
const LOCK = 1_937_010_551

/** What a schema says of itself. */
interface SchemaState {
  readonly version: number
  /** The version that a release must know at least. */
  readonly usableFrom: number
}

/**
 * Makes the schema, or brings an older one to this release. Throws for a schema that this release cannot use, and for
 * an older one to which no step leads; then nothing was changed.
 */
export async function prepareSchema(
  connection: Connection,
  schema: string,
  steps: readonly SchemaStep[] = SCHEMA_STEPS,
): Promise<void> {
  while (!isCurrent(await usableState(connection, schema, steps), steps))
    await inTurn(connection, schema, () => oneStep(connection, schema, steps))
}

/** Throws if a newer release has changed the schema, so that this one cannot use it any more. */
export async function refuseNewer(connection: Connection, schema: string): Promise<void> {
  await usableState(connection, schema, SCHEMA_STEPS)
}

/** In one transaction, under the lock. */
async function oneStep(connection: Connection, schema: string, steps: readonly SchemaStep[]): Promise<void> {
  const state = await usableState(connection, schema, steps)
  // Another server was faster.
  if (isCurrent(state, steps)) return
  const { version, usableFrom, statements } = nextStep(state, schema, steps)
  if (state !== undefined && state.usableFrom < usableFrom) return fence(connection, schema, usableFrom)
  const of = quoted(schema)
  // Calls that older servers made before the fence end first.
  if (state !== undefined && usableFrom === version)
    await connection.query(`LOCK TABLE ${of}.records IN ACCESS EXCLUSIVE MODE`)
  for (const statement of statements(of)) await connection.query(statement)
  await connection.query(`UPDATE ${of}.schema_version SET version = $1, usable_from = $2`, [version, usableFrom])
}

/**
 * Before a step that older releases cannot follow: their servers find their functions gone, so none of their calls
 * changes anything any more. The step has a transaction of its own: a call that began before the functions went would
 * otherwise wait for the table until the end of the step, and then go on.
 */
async function fence(connection: Connection, schema: string, usableFrom: number): Promise<void> {
  const functions = await connection.query(
    `SELECT p.oid::regprocedure::text AS name FROM pg_catalog.pg_proc AS p
      JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
      WHERE n.nspname = $1 AND substring(p.proname FROM '_([0-9]+)$')::integer < $2`,
    [schema, usableFrom],
  )
  for (const { name } of functions) await connection.query(`DROP FUNCTION ${String(name)}`)
  await connection.query(`UPDATE ${quoted(schema)}.schema_version SET usable_from = $1`, [usableFrom])
}

async function inTurn<T>(connection: Connection, schema: string, work: () => Promise<T>): Promise<T> {
  await connection.query('BEGIN')
  try {
    await connection.query('SELECT pg_advisory_xact_lock($1, hashtext($2))', [LOCK, schema])
    const result = await work()
    await connection.query('COMMIT')
    return result
  } catch (error) {
    await connection.query('ROLLBACK').catch(() => undefined)
    throw error
  }
}

/** `undefined` for a schema that does not exist. Throws for one that this release cannot use. */
async function usableState(
  connection: Connection,
  schema: string,
  steps: readonly SchemaStep[],
): Promise<SchemaState | undefined> {
  const table = `${quoted(schema)}.schema_version`
  // Not `to_regclass`: it may remember that the table was absent before another server made it.
  const there = `SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = 'schema_version'`
  if ((await connection.query(there, [schema])).length === 0) return undefined
  const rows = await connection.query(`SELECT version, usable_from FROM ${table}`)
  const [version, usableFrom] = [Number(rows[0]?.version), Number(rows[0]?.usable_from)]
  if (rows.length !== 1 || !Number.isSafeInteger(version) || !Number.isSafeInteger(usableFrom))
    throw new Error(`the table ${table} is damaged: it must hold one row with the version`)
  const own = ownVersion(steps)
  if (usableFrom > own)
    throw new Error(
      `the schema ${quoted(schema)} has version ${version} and can be used from version ${usableFrom} on; this release ` +
        `uses version ${own}; nothing was changed; use the release that wrote it, or a newer one`,
    )
  return { version, usableFrom }
}

function nextStep(state: SchemaState | undefined, schema: string, steps: readonly SchemaStep[]): SchemaStep {
  const [first, ...others] = steps
  if (state === undefined) return first
  const step = others.find(({ version }) => version === state.version + 1)
  if (step !== undefined) return step
  throw new Error(
    `the schema ${quoted(schema)} has version ${state.version}; this release uses version ${ownVersion(steps)}, and brings ` +
      `schemas from version ${first.version} on to it; nothing was changed; start a release between the two first`,
  )
}

function isCurrent(state: SchemaState | undefined, steps: readonly SchemaStep[]): boolean {
  return state !== undefined && state.version >= ownVersion(steps)
}

function ownVersion(steps: readonly SchemaStep[]): number {
  return steps[steps.length - 1].version
}
