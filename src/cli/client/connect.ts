import { folderCredentials } from '../../credentials/folder-credentials.ts'
import { readFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { type Command, Option } from 'commander'
import { ClientError, type ClientOptions, createClient, type Project, type RetryOptions } from '../../client/index.ts'
import { Connection } from '../../client/http/connection.ts'
import { RetryPolicy } from '../../client/http/retry.ts'
import type { ProjectAddress } from '../../archive/remote.ts'
import { StowageError } from '../../errors.ts'
import { quoted, quotedPath } from '../../object/id.ts'
import { StoppedError } from '../common/exit.ts'
import { durationSecondsOrNone, folderName } from '../common/options.ts'
import { signalToStop } from '../common/signals.ts'
import { withExistingStorage } from '../common/storage.ts'
import { withServiceOver } from './in-process.ts'
import { RemoteModels } from './models.ts'
import { lineProgress, NO_PROGRESS, openProgress, type Progress, type Wait } from './progress.ts'
import { printable } from '../common/format.ts'

/**
 * How much the heap may grow, in percent, from one full collection to the next. Texts pass through by the gigabyte, and
 * a command that runs beside other programs should not keep three times the memory that it uses: at 60, a second
 * version of a million objects took 259 MB instead of 368, in the same time.
 */
const HEAP_GROWING_PERCENT = 60
/** A server that restarts, or a machine that does. */
const RETRY_SECONDS = 300

/** The place of the objects, as all commands of the client take it. */
export interface ConnectOptions {
  readonly url?: string
  readonly project?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly data?: string
  /** In seconds. */
  readonly retryFor: number
  readonly quiet?: boolean
  readonly json?: boolean
}

export interface Connected {
  readonly project: Project
  readonly models: RemoteModels
  /** The same project, for exports and imports. */
  readonly remote: ProjectAddress
  /** The address of the project, to be compared with the origin of other files. */
  readonly address: string
  readonly signal: AbortSignal
  /** Shows the progress of the transfer, and later the reason for each wait. The command's end stops it. */
  readonly openProgress: () => Promise<Progress>
}

export const CONNECT_HELP: string = `
STOWAGE_URL, STOWAGE_PROJECT and STOWAGE_TOKEN replace --url, --project and --token. Pass the token in the environment or
in a file, because other users of the machine can see command lines. --data uses a folder on this machine that no server
has open. Node's own variables set certificates (NODE_EXTRA_CA_CERTS) and, from Node 24 on, proxies
(NODE_USE_ENV_PROXY=1 with HTTPS_PROXY).`

export function addConnectOptions(command: Command): Command {
  return command
    .addOption(new Option('--url <url>', 'the address of the service').env('STOWAGE_URL'))
    .addOption(new Option('--project <id>', 'the project').env('STOWAGE_PROJECT'))
    .addOption(
      new Option('--token <token>', 'the token; none for a service without authentication').env('STOWAGE_TOKEN'),
    )
    .addOption(new Option('--token-file <file>', 'a file with the token, read again for each request'))
    .addOption(new Option('--data <folder>', 'a data folder on this machine instead of --url').argParser(folderName))
    .addOption(retryForOption())
    .addOption(quietOption())
}

/** How long a command waits for a server that is away. */
export function retryForOption(): Option {
  return new Option(
    '--retry-for <duration>',
    'how long to retry while the server is away: 90s, 15m, 12h; 0 turns retries off',
  )
    .argParser(durationSecondsOrNone)
    .default(RETRY_SECONDS, '5m')
}

export function quietOption(): Option {
  return new Option('--quiet', 'no progress on stderr')
}

/**
 * Runs the command with its project, and with a signal that aborts at Ctrl-C and at the command's end: nothing is
 * awaited after that. Errors of the client come out with their remedy. `clientOptions` go to the client.
 */
export async function withProject(
  options: ConnectOptions,
  command: Command,
  use: (connected: Connected) => Promise<void>,
  clientOptions: Partial<ClientOptions> = {},
): Promise<void> {
  const { project: projectId } = options
  if (projectId === undefined) return command.error('--project is missing: name the project, or set STOWAGE_PROJECT')
  await withServer(options, command, (connectTo) => use(connectTo(projectId)), clientOptions)
}

export interface ServerOfCommand {
  readonly server: ClientOptions
  readonly signal: AbortSignal
}

/** The same without a project. */
export async function withServer(
  options: ConnectOptions,
  command: Command,
  use: (connectTo: (projectId: string) => Connected, where: ServerOfCommand) => Promise<void>,
  clientOptions: Partial<ClientOptions> = {},
): Promise<void> {
  const { data, url } = options
  if (data === undefined && url === undefined)
    return command.error(
      '--url is missing: give the address of the service, or set STOWAGE_URL; --data <folder> takes a folder of this machine instead',
    )
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWING_PERCENT}`)
  const stop = new AbortController()
  const { signal } = stop
  void signalToStop().then((name) => stop.abort(new StoppedError(name)))
  // Commands that show no progress report at least their waits.
  let progress = options.quiet === true ? NO_PROGRESS : lineProgress()
  const run = async (where: ClientOptions, address: string): Promise<void> => {
    const retry = retryOf(options, address, (wait) => progress.wait(wait))
    const server = { retry, ...where, ...clientOptions }
    const connectTo = (projectId: string): Connected => ({
      project: createClient(server).project(projectId),
      models: new RemoteModels({ connection: new Connection(where), retry: new RetryPolicy(retry), projectId, signal }),
      remote: { retry, ...where, projectId },
      address: `${address} ${projectId}`,
      signal,
      openProgress: async () => (progress = options.quiet === true ? NO_PROGRESS : await openProgress()),
    })
    await use(connectTo, { server, signal })
  }
  try {
    if (data !== undefined) await withFolder(data, (where) => run(where, data))
    else await run({ url: checkedUrl(url as string), token: tokenOf(options) }, url as string)
  } catch (error) {
    signal.throwIfAborted()
    throw withAdvice(error, options)
  } finally {
    progress.stop()
    stop.abort()
  }
}

export function retryOf(
  { retryFor }: Pick<ConnectOptions, 'retryFor'>,
  address: string,
  onWait: (wait: Wait) => void,
): RetryOptions | false {
  if (retryFor === 0) return false
  return {
    retryForMs: retryFor * 1_000,
    onRetry: (error, _waitMs, leftMs) =>
      onWait({ text: `waiting for ${printable(address)} (${printable(reasonOf(error))})`, leftMs }),
  }
}

/** In a few words. */
function reasonOf({ code, isAnswered, statusCode, cause }: ClientError): string {
  if (isAnswered) return `it answered ${statusCode}`
  if (code === 'timed_out') return 'no answer'
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  const said = inner instanceof AggregateError ? (inner.errors as unknown[])[0] : inner
  return said instanceof Error && said.message !== '' ? said.message : code
}

/** The service runs in this process and is called without a network. */
export async function withFolder(folder: string, use: (where: ClientOptions) => Promise<void>): Promise<void> {
  await withExistingStorage(folder, (backend) => withServiceOver(backend, folderCredentials(folder), use))
}

export function checkedUrl(url: string): string {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new StowageError(
      'invalid_request',
      `${quoted(url)} is not the address of a service; it must be like https://models.example/stowage`,
    )
  const { search, hash, username, password } = new URL(url)
  if (search + hash + username + password === '') return url
  throw new StowageError(
    'invalid_request',
    'the address of a service has no query, no fragment and no credentials; it must be like https://models.example/stowage, the token goes into STOWAGE_TOKEN or a file',
  )
}

export function tokenOf({ token, tokenFile }: Pick<ConnectOptions, 'token' | 'tokenFile'>): ClientOptions['token'] {
  if (tokenFile !== undefined) return () => tokenIn(tokenFile)
  // A variable that is empty is one that is not set.
  return token === undefined || token.trim() === '' ? undefined : token.trim()
}

async function tokenIn(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new Error(`the token file ${quotedPath(path)} cannot be read`, { cause })
    throw new StowageError('invalid_request', `there is no token file ${quotedPath(path)}`)
  }
}

export function withAdvice(error: unknown, options: Pick<ConnectOptions, 'url' | 'token' | 'tokenFile'>): unknown {
  if (!(error instanceof ClientError)) return error
  if (error.code === 'invalid_id' && !error.isAnswered) return new StowageError('invalid_id', error.message)
  const advice = adviceFor(error, options)
  return new Error(advice === undefined ? error.message : `${error.message}; ${advice}`)
}

function adviceFor(
  { code, statusCode }: ClientError,
  { url, token, tokenFile }: Pick<ConnectOptions, 'url' | 'token' | 'tokenFile'>,
): string | undefined {
  if (code === 'network_failed')
    return `is a server running at ${url ?? 'that address'}? Run the command again to continue`
  if (code === 'timed_out') return 'run the command again to continue'
  if (statusCode === 401)
    return (token ?? '').trim() === '' && tokenFile === undefined
      ? 'give a token with --token-file or STOWAGE_TOKEN'
      : 'the token may have expired or be one of another server; "stowage token" makes a new one'
  if (statusCode === 413 && code === 'http_error')
    return 'an upload with a smaller --batch-bytes sends less in one request, down to the largest object'
  if (statusCode === 403) return 'ask for a token that may do this in this project ("stowage token --help")'
  if (code === 'route_not_found' || code === 'http_error')
    return 'does --url name the service, with the prefix that it may have?'
  return undefined
}
