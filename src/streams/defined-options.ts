/** The options that are given: Node's streams do not take `undefined` for a default everywhere. */
export function definedOptions<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as { [K in keyof T]: Exclude<T[K], undefined> }
}
