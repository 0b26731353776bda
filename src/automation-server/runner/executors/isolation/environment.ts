/**
 * The variables of this environment that a function's process receives: program paths, languages, certificates; nothing
 * that could be a secret.
 */
const PASSED: readonly string[] = [
  'PATH',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'SystemRoot',
  'ComSpec',
  'PATHEXT',
  'WINDIR',
]
/** The part of a process's memory that JavaScript objects may take; the rest is for code, buffers and stacks. */
const HEAP_SHARE = 0.75
const MB = 1_048_576

export interface EnvironmentOptions {
  /** The folder for files that are deleted with the process. */
  readonly folder: string
  readonly memoryBytesMax: number
  /** Of the operator, on top. */
  readonly env: Readonly<Record<string, string>>
}

export function functionEnvironment({ folder, memoryBytesMax, env }: EnvironmentOptions): Record<string, string> {
  const passed = PASSED.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]] as const]))
  const heap = `--max-old-space-size=${Math.max(16, Math.floor((memoryBytesMax * HEAP_SHARE) / MB))}`
  return {
    ...Object.fromEntries(passed),
    HOME: folder,
    TMPDIR: folder,
    TMP: folder,
    TEMP: folder,
    STOWAGE_RUN_CAPTURED: '1',
    ...env,
    NODE_OPTIONS: env.NODE_OPTIONS === undefined ? heap : `${heap} ${env.NODE_OPTIONS}`,
  }
}
