import { StowageError } from '../../errors.ts'

/** Something that is not as it should be, or worth knowing. */
export interface Finding {
  /** `damage`: data is lost or wrong. `note`: harmless, such as leftovers of a crash that a sweep will remove. */
  readonly severity: 'damage' | 'note'
  /** The subject: the project if it is known, and the pack, plan, record or blob. */
  readonly projectId?: string
  readonly subject: string
  readonly message: string
}

export function damage(projectId: string | undefined, subject: string, message: string): Finding {
  return { severity: 'damage', projectId, subject, message }
}

export function note(projectId: string | undefined, subject: string, message: string): Finding {
  return { severity: 'note', projectId, subject, message }
}

export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message
}

/**
 * A temporary failure of the storage says nothing about its contents: such an error is thrown on, and is not a finding.
 */
export function damageBy(
  error: unknown,
  projectId: string | undefined,
  subject: string,
  words: (message: string) => string = (message) => message,
): Finding {
  if (error instanceof StowageError && (error.isRetryable || error.code === 'storage_full')) throw error
  return damage(projectId, subject, words(messageOf(error)))
}
