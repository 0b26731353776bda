import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { isUnder, PACKAGE_NAMES, SYSTEM_PATHS, systemEntries, visiblePaths } from './visible-paths.ts'

export interface SandboxOptions {
  /** The command line that runs the command, and is replaced by it in the end. */
  readonly shell: readonly string[]
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Of the run, and all that it can write to. Inside it is `/tmp`. */
  readonly folder: string
  readonly readablePaths: readonly string[]
  /** Paths that no function may see, even if a folder above them is visible. */
  readonly hiddenPaths: readonly string[]
  /** Mounts on top of all others. */
  readonly mounts: readonly string[]
  /** Whether it has the network of the machine. */
  readonly hasNetwork: boolean
}

/** The path of a run's private folder inside the sandbox. */
export const INSIDE_FOLDER = '/tmp'
const PROGRAM = 'bwrap'
const PROBE_MS = 20_000
/** Nobody: inside, files of the server's user look like its own, and no others do. */
const NOBODY = '65534'

/**
 * The program and parameters that run a command in namespaces of its own: its processes, mounts, host name and shared
 * memory, and its network unless it has that of the machine. All of it ends with the first process, and that with the
 * one that started it. Throws for a function whose files are hidden.
 */
export async function bubblewrapCommand(options: SandboxOptions): Promise<readonly string[]> {
  const hidden = await realPaths(options.hiddenPaths)
  const own = await realPaths([options.cwd])
  if (own.some((path) => hidden.includes(path)))
    throw new Error(
      `a function may not see the data folder, and its own folder is that folder (${options.cwd}); put its file into a folder of its own`,
    )
  const found = await visiblePaths(options)
  const visible = found.filter((path) => !isUnder(path, hidden))
  const covered = found.filter(
    (path) => isUnder(path, hidden) && (isUnder(path, own) || PACKAGE_NAMES.includes(basename(path))),
  )
  const masked = hidden.filter((path) => isUnder(path, [...visible, ...SYSTEM_PATHS]))
  return [
    PROGRAM,
    ...namespaces(options.hasNetwork),
    ...(await systemMounts()),
    '--bind',
    options.folder,
    INSIDE_FOLDER,
    '--bind',
    options.folder,
    '/dev/shm',
    ...visible.flatMap(readOnly),
    ...masked.flatMap((path) => ['--tmpfs', path]),
    ...covered.flatMap(readOnly),
    ...masked.flatMap((path) => ['--remount-ro', path]),
    ...options.mounts,
    ...words('--remount-ro /dev --remount-ro / --chdir'),
    options.cwd,
    '--',
    ...options.shell,
    ...options.command,
  ]
}

/** The reason why this machine cannot make namespaces for functions; `undefined` if it can. */
export async function bubblewrapProblem(): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'bubblewrap needs Linux'
  const command = [...namespaces(false), ...(await systemMounts()), '--ro-bind', process.execPath, process.execPath]
  try {
    await promisify(execFile)(PROGRAM, [...command, '--remount-ro', '/', '--', process.execPath, '--version'], {
      timeout: PROBE_MS,
      env: process.env.PATH === undefined ? {} : { PATH: process.env.PATH },
    })
    return undefined
  } catch (error) {
    const { code, stderr = '' } = error as { readonly code?: unknown; readonly stderr?: string }
    if (code === 'ENOENT') return 'bubblewrap is not installed'
    const [words] = stderr.trim().split('\n').slice(-1)
    return `bubblewrap cannot make namespaces here: ${words === '' ? String(code) : words}`
  }
}

function namespaces(hasNetwork: boolean): readonly string[] {
  return [
    ...words(`--unshare-user --uid ${NOBODY} --gid ${NOBODY} --cap-drop ALL --die-with-parent`),
    ...words('--unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --hostname function'),
    ...(hasNetwork ? [] : ['--unshare-net']),
  ]
}

async function systemMounts(): Promise<readonly string[]> {
  const entries = await systemEntries()
  return [
    ...entries.flatMap(({ path, link }) => (link === undefined ? readOnly(path) : ['--symlink', link, path])),
    ...words('--proc /proc --dev /dev'),
  ]
}

function words(text: string): readonly string[] {
  return text.split(' ')
}

function readOnly(path: string): readonly string[] {
  return ['--ro-bind-try', path, path]
}

async function realPaths(paths: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(paths.map((path) => realpath(path).catch(() => [])))
  return [...new Set(found.flat())]
}
