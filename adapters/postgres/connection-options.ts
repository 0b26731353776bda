import { createHash } from 'node:crypto'

/** A connection string, and what follows from it. */
export interface Address {
  /** For messages: no user, no password. */
  readonly place: string
  /** True where the connection must be encrypted and its certificate checked; the string may decide otherwise. */
  readonly needsTls: boolean
}

/** How long the opening waits for PostgreSQL, unless the host says otherwise. */
export const START_TIMEOUT_MS = 30_000

const NO_HOST = 'no-host.invalid'
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[?::1\]?)$/i

/** Throws `TypeError` for text that is no connection string of PostgreSQL. */
export function addressOf(connectionString: string): Address {
  const url = parsed(connectionString)
  const named = url.hostname === NO_HOST ? '' : decodeURIComponent(url.hostname)
  const host = url.searchParams.get('host') ?? (named || process.env.PGHOST || 'localhost')
  const port = url.port || url.searchParams.get('port') || process.env.PGPORT || '5432'
  const database = decodeURIComponent(url.pathname.slice(1)) || process.env.PGDATABASE
  const isLocal = LOOPBACK.test(host) || host.startsWith('/')
  const isDecided =
    url.searchParams.has('sslmode') || url.searchParams.has('ssl') || process.env.PGSSLMODE !== undefined
  return {
    place: `PostgreSQL at ${host}:${port}${database === undefined ? '' : `/${database}`}`,
    needsTls: !isLocal && !isDecided,
  }
}

function parsed(connectionString: string): URL {
  let url: URL | undefined
  try {
    // A URL with a user must have a host; `pg` accepts one without.
    url = new URL(connectionString.replace('@/', `@${NO_HOST}/`))
  } catch {
    // The message must not repeat the text: it may hold a password.
  }
  if (url?.protocol !== 'postgres:' && url?.protocol !== 'postgresql:')
    throw new TypeError('connectionString must be of the form postgres://user:password@host:5432/database')
  return url
}

const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/

/** Throws `RangeError` for a name that would need quotes everywhere else. */
export function checkSchema(schema: string): void {
  if (SCHEMA.test(schema) && !schema.startsWith('pg_')) return
  throw new RangeError(
    `${JSON.stringify(schema).slice(0, 80)} is no name of a schema: a-z, 0-9 and _, not beginning with a digit or pg_, at most 63 bytes`,
  )
}

/** Names of prepared statements belong to a connection, which a host's pool may share with other schemas. */
export function statementName(text: string): string {
  return `stowage_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}
