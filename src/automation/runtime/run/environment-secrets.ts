/** Names of variables whose values are not for logs. */
const SECRET_NAME = /key|token|secret|password|passwd|credential|auth/i

/** Values that an operator would not want to see in a log, by the names that they were given. */
export function environmentSecrets(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) => (value !== undefined && SECRET_NAME.test(name) ? [value] : []))
}
