import { lstat, readdir, readlink, realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface VisibleOptions {
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Files and folders besides those that a function needs. */
  readonly readablePaths: readonly string[]
}

/** The paths of the machine that every program needs to run at all. */
export const SYSTEM_PATHS: readonly string[] = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/nix/store',
  '/gnu/store',
  '/etc/alternatives',
  '/etc/ca-certificates',
  '/etc/group',
  '/etc/hosts',
  '/etc/ld.so.cache',
  '/etc/localtime',
  '/etc/nsswitch.conf',
  '/etc/passwd',
  '/etc/pki',
  '/etc/resolv.conf',
  '/etc/ssl',
]
/** By which node and tsx find packages, in each folder from that of a file upwards. */
export const PACKAGE_NAMES: readonly string[] = ['package.json', 'tsconfig.json', 'node_modules']
/** The variables that name certificates. */
const PATH_VARIABLES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR']
/** Of folders whose packages are looked through for links to other folders. */
const PACKAGE_FOLDERS_MAX = 1_000

/**
 * The paths that a function may read: its working folder, the files that its command names, the program, the operator's
 * additions, and from every folder above one of these `node_modules`, `package.json` and `tsconfig.json`, with the
 * folders that packages there link to. Absolute, each once, without missing ones.
 */
export async function visiblePaths({ command, cwd, env, readablePaths }: VisibleOptions): Promise<readonly string[]> {
  const named = [process.execPath, ...command, ...PATH_VARIABLES.flatMap((name) => env[name] ?? [])]
  const wanted = [cwd, ...readablePaths, ...named.flatMap((part) => pathIn(part, cwd))]
  const found = new Set<string>()
  const waiting: string[] = []
  const add = async (path: string): Promise<void> => {
    const real = await realpath(path).catch(() => undefined)
    if (real === undefined || isUnder(path, found)) return
    for (const one of [path, real]) {
      found.add(one)
      waiting.push(one)
    }
  }
  for (const path of wanted) await add(resolve(cwd, path))
  for (const path of waiting) {
    if (isUnder(path, SYSTEM_PATHS)) continue
    for (const above of aboveOf(path)) {
      for (const name of PACKAGE_NAMES) await add(join(above, name))
    }
    for (const target of await linkedPackages(path)) if (waiting.length < PACKAGE_FOLDERS_MAX) await add(target)
  }
  return [...found].filter((path) => !isUnder(path, SYSTEM_PATHS))
}

/** Whether a path is one of these or lies below one. */
export function isUnder(path: string, folders: Iterable<string>): boolean {
  for (const folder of folders) {
    const way = relative(folder, path)
    if (way === '' || (way !== '..' && !way.startsWith('../') && !isAbsolute(way))) return true
  }
  return false
}

/** The kind of each of the system's paths: a folder or file, or a link such as `/bin` is today. */
export async function systemEntries(): Promise<readonly { readonly path: string; readonly link?: string }[]> {
  const found = await Promise.all(
    SYSTEM_PATHS.map(async (path) => {
      const entry = await lstat(path).catch(() => undefined)
      if (entry === undefined) return []
      const isRootLink = entry.isSymbolicLink() && dirname(path) === '/'
      return [isRootLink ? { path, link: await readlink(path) } : { path }]
    }),
  )
  return found.flat()
}

function pathIn(part: string, cwd: string): readonly string[] {
  if (part.startsWith('file:')) return URL.canParse(part) ? [fileURLToPath(part)] : []
  return part.includes('/') && !part.includes('\0') ? [resolve(cwd, part)] : []
}

function aboveOf(path: string): readonly string[] {
  const folders = [path]
  while (dirname(folders[folders.length - 1]) !== folders[folders.length - 1])
    folders.push(dirname(folders[folders.length - 1]))
  return folders
}

/** A package that is being worked on is a link to its folder. */
async function linkedPackages(path: string): Promise<readonly string[]> {
  if (!path.endsWith('/node_modules')) return []
  const links: string[] = []
  for (const name of await readdir(path).catch(() => [])) {
    const inner = name.startsWith('@') ? await readdir(join(path, name)).catch(() => []) : []
    for (const one of [join(path, name), ...inner.map((member) => join(path, name, member))]) {
      const entry = await lstat(one).catch(() => undefined)
      if (entry?.isSymbolicLink() === true && (await stat(one).catch(() => undefined))?.isDirectory() === true)
        links.push(await realpath(one))
    }
  }
  return links
}
