/** Levels of a JSON object that a run returns, including the object itself: the most that servers accept. */
export const JSON_DEPTH_MAX = 32

/** Whether a value has more levels of objects and lists than this. Looks no deeper. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1))
}
