/** What PostgreSQL calls the reasons (Appendix A of its manual) that have a meaning of their own here. */
const DISK_FULL = '53100'
const STARTING_UP = '57P03'
/** A function, a table or a schema that is named does not exist. */
const ABSENT: ReadonlySet<string> = new Set(['42883', '42P01', '3F000'])

/** No server listens yet, or the one that listens is not ready. */
const NOT_YET: ReadonlySet<string> = new Set([STARTING_UP, 'ECONNREFUSED', 'ECONNRESET', 'ENOENT', 'EAI_AGAIN'])

/** An error as the storage seam classifies it: a full disk by its `code`; anything else cannot be used at the moment. */
export function engineError(error: unknown): unknown {
  if (!(error instanceof Error) || codeOf(error) !== DISK_FULL) return error
  return Object.assign(new Error(error.message, { cause: error }), { code: 'ENOSPC' })
}

/** Whether waiting helps: PostgreSQL starts, or is about to. */
export function isStarting(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isStarting)
  return NOT_YET.has(codeOf(error) ?? '') || (error instanceof Error && /terminated unexpectedly/.test(error.message))
}

/** Whether something of the schema is gone, as when a newer release has changed it. */
export function isOfAbsentPart(error: unknown): boolean {
  return ABSENT.has(codeOf(error) ?? '')
}

/** Whether PostgreSQL refused one statement, on a connection that goes on. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'severity' in error && error.severity === 'ERROR'
}

function codeOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
