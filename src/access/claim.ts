import type { AccessRight } from './access.ts'

/**
 * The rights that a token's claim `{"stowage":{"projects":{"<id>":"read"|"write"}}}` grants. A malformed part of the
 * claim grants nothing: it counts as absent, so the bearer is known and gets 403, and never more than was meant.
 */
export function projectsOfClaim(claim: unknown): ReadonlyMap<string, AccessRight> {
  const granted = new Map<string, AccessRight>()
  if (!isRecord(claim) || !isRecord(claim.projects)) return granted
  for (const [projectId, right] of Object.entries(claim.projects)) {
    if (right === 'read' || right === 'write') granted.set(projectId, right)
  }
  return granted
}

/** Whether the claim has `"sealedSecrets":true`. */
export function readsSealedSecrets(claim: unknown): boolean {
  return isRecord(claim) && claim.sealedSecrets === true
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
