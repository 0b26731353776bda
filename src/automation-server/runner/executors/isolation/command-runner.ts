import { randomBytes } from 'node:crypto'
import { access, constants } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { ProcessGroup } from './process-group.ts'
import { bubblewrapCommand, INSIDE_FOLDER, bubblewrapProblem } from './bubblewrap.ts'
import { type SocketBridge, bridgeMounts, bridgeTo } from './socket-bridge.ts'
import { functionEnvironment } from './environment.ts'
import { MARK_VARIABLE } from './kill.ts'
import { BRIDGE_SCRIPT, GROUP_SCRIPT, INSIDE_SCRIPT, LISTEN_CODE } from './launch-script.ts'
import { ProcessLedger } from './process-ledger.ts'

/** How commands are kept apart from the server and its machine. */
export interface IsolationOptions {
  /**
   * `auto`: by bubblewrap if it is installed and can make namespaces, otherwise as processes of the same user.
   * `required`: by bubblewrap, or the service does not open. `off`: as processes. `auto` by default.
   */
  readonly isolation?: 'auto' | 'required' | 'off'
  /** Paths that no function may see, such as the data folder. Without bubblewrap they are visible. */
  readonly hiddenPaths?: readonly string[]
  /**
   * The folder that records the processes of functions, so that the next server ends those of a killed one. By default
   * a folder of the user in the system's temporary folder.
   */
  readonly processFolder?: string
}

/** The isolation that applies to commands. */
export interface IsolationStatus {
  /** How functions that are commands are isolated. */
  readonly kind: 'bubblewrap' | 'process'
  /** Why it is not bubblewrap. */
  readonly reason?: string
}

export interface RunnerStart {
  /** The program, then its parameters. */
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly memoryBytesMax: number
  readonly readablePaths: readonly string[]
  readonly hasNetwork: boolean
  /** A private one. */
  readonly folder: string
  /** The address of the server; without it the function cannot reach the server. */
  readonly serverUrl?: string
  /**
   * Creates the files of the function in `folder` and returns the last parameters; paths and the URL are those that the
   * function sees.
   */
  readonly prepare: (inside: { readonly folder: string; readonly serverUrl: string }) => Promise<readonly string[]>
}

const MARK_BYTES = 16
const SHELL = '/bin/sh'
const NAME = 'function'

/**
 * Starts the processes of functions: with as much between them and the server as this machine can put there, and each
 * written down before it begins.
 */
export class CommandRunner {
  readonly #options: IsolationOptions
  readonly #ledger: ProcessLedger
  #view: Promise<IsolationStatus> | undefined

  constructor(options: IsolationOptions = {}) {
    this.#options = options
    this.#ledger = new ProcessLedger(options.processFolder)
  }

  /** Tried once. */
  view(): Promise<IsolationStatus> {
    this.#view ??= this.#tried()
    return this.#view
  }

  /** Ends the leftovers of killed servers. Throws if isolation is required and unavailable. */
  async open(): Promise<void> {
    await this.#ledger.endLeftovers()
    const { isolation } = this.#options
    if (isolation !== 'required') return
    const { kind, reason } = await this.view()
    if (kind === 'process')
      throw new Error(`functions are to be isolated, and this machine cannot do that: ${reason}; install bubblewrap`)
  }

  /** Resolves when the function's process has begun. Rejects when the program cannot be started. */
  async start(start: RunnerStart): Promise<ProcessGroup> {
    const { command, env, cwd } = start
    await checkProgram(command[0], cwd, env.PATH ?? process.env.PATH ?? '')
    const { kind, reason } = await this.view()
    if (kind === 'process' && this.#options.isolation === 'required') throw new Error(reason)
    return kind === 'bubblewrap' ? this.#startInside(start) : this.#startGroup(start)
  }

  async #tried(): Promise<IsolationStatus> {
    if (this.#options.isolation === 'off') return { kind: 'process', reason: 'it is switched off' }
    const reason = await bubblewrapProblem()
    return reason === undefined ? { kind: 'bubblewrap' } : { kind: 'process', reason }
  }

  async #startGroup(start: RunnerStart): Promise<ProcessGroup> {
    const { command, cwd, folder, serverUrl = '' } = start
    const mark = newMark()
    const parameters = await start.prepare({ folder, serverUrl })
    const plain = [...command, ...parameters]
    const isGated = process.platform !== 'win32'
    return ProcessGroup.start({
      command: isGated ? [SHELL, '-c', GROUP_SCRIPT, NAME, ...plain] : plain,
      cwd,
      env: environment(start, folder, mark),
      mark,
      ...(isGated ? { ledger: this.#ledger } : {}),
    })
  }

  async #startInside(start: RunnerStart): Promise<ProcessGroup> {
    const { folder, hasNetwork, serverUrl } = start
    const mark = newMark()
    const bridge = serverUrl === undefined || hasNetwork ? undefined : bridgeTo(serverUrl)
    const inside = { folder: INSIDE_FOLDER, serverUrl: bridge?.insideUrl ?? serverUrl ?? '' }
    const command = [...start.command, ...(await start.prepare(inside))]
    const env = environment(start, INSIDE_FOLDER, mark)
    const sandboxed = await bubblewrapCommand({
      ...start,
      env,
      hiddenPaths: this.#options.hiddenPaths ?? [],
      mounts: bridge === undefined ? [] : await bridgeMounts(bridge, folder),
      shell: shellFor(bridge),
      command,
    })
    return ProcessGroup.start({
      command: sandboxed,
      cwd: '/',
      env,
      mark,
      ledger: this.#ledger,
      isSandboxed: true,
      ...(bridge === undefined ? {} : { bridge }),
    })
  }
}

function newMark(): string {
  return randomBytes(MARK_BYTES).toString('hex')
}

function shellFor(bridge: SocketBridge | undefined): readonly string[] {
  return bridge === undefined
    ? [SHELL, '-c', INSIDE_SCRIPT, NAME]
    : [SHELL, '-c', BRIDGE_SCRIPT, NAME, process.execPath, LISTEN_CODE, String(bridge.insidePort)]
}

function environment({ memoryBytesMax, env }: RunnerStart, folder: string, mark: string): Record<string, string> {
  return { ...functionEnvironment({ folder, memoryBytesMax, env }), [MARK_VARIABLE]: mark }
}

/** The shell's message about it is not for people. */
async function checkProgram(program: string, cwd: string, path: string): Promise<void> {
  if (process.platform === 'win32') return
  const candidates = program.includes('/')
    ? [resolve(cwd, program)]
    : path.split(delimiter).map((one) => join(one, program))
  const refusals = new Set<string>()
  try {
    await access(cwd)
    for (const candidate of candidates) {
      const code = await access(candidate, constants.X_OK).then(
        () => undefined,
        (error: NodeJS.ErrnoException) => error.code ?? 'UNKNOWN',
      )
      if (code === undefined) return
      refusals.add(code)
    }
  } catch (error) {
    refusals.add((error as NodeJS.ErrnoException).code ?? 'UNKNOWN')
  }
  const code = refusals.has('EACCES') ? 'EACCES' : 'ENOENT'
  throw new Error(`the program ${JSON.stringify(program)} could not be started: ${code}`)
}
