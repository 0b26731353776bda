/** What the command takes from the environment in place of options: its storage, its server, and the keys to them. */
const SETTING = /^STOWAGE_(?:DATA|URL|PROJECT|(?:(?:FROM|TO)_)?(?:RECORDS|BLOBS|TOKEN|SEALING_KEY(?:_FILE)?))$/

/**
 * The environment without settings of the command: servers that tests and benchmarks start must use storages of their
 * own, and never the one that somebody named for daily work.
 */
export function withoutOwnSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !SETTING.test(name)))
}
