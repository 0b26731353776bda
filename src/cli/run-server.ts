import type { Command } from 'commander'
import { accessFromFolder } from '../access/token-store.ts'
import { automation } from '../automation-server/automation.ts'
import { secretKeyFromFolder } from '../automation-server/secret-key-file.ts'
import { normalizePrefix } from '../http/router.ts'
import { DEFAULT_LIMITS, type Limits } from '../limits.ts'
import { continueOnExpect, createObjectService, type ObjectService } from '../service.ts'
import type { Logger } from '../logger.ts'
import type { CommonServiceOptions, ObjectServiceOptions } from '../service-options.ts'
import { describeFailure } from './exit.ts'
import { boundedServer, listen, stopServing } from './http-server.ts'
import { printJson, printLine, printNote } from './output.ts'
import { signalToStop } from './signals.ts'
import { type StorageKind, storageOf } from './storage.ts'

/** The options of `stowage serve` as the parser hands them over. */
export interface ServeOptions extends Partial<Limits> {
  readonly data: string
  readonly storage?: StorageKind
  readonly host: string
  readonly port: number
  readonly prefix?: string
  readonly uploadStatus: '200' | '201'
  readonly cors?: readonly string[]
  readonly memoryBytesMax?: number
  readonly connectionsMax: number
  readonly graceMs: number
  readonly json?: boolean
}

/** Serves until a signal tells it to stop. */
export async function runServer(options: ServeOptions, command: Command): Promise<void> {
  const stop = signalToStop()
  const { backend, kind } = await storageOf(options.data, options.storage)
  let url = ''
  const extensions = [automation({ secretKeys: [await secretKeyFromFolder(options.data)], serverUrl: () => url })]
  const service = createService({ backend, access: await accessFromFolder(options.data), extensions, ...serviceOptions(options) }, command)
  try {
    await service.ready()
    const server = boundedServer(service.node, options.connectionsMax)
    continueOnExpect(server, service)
    url = `${await listen(server, options)}${normalizePrefix(options.prefix)}`
    if (options.json) printJson({ url, pid: process.pid, data: options.data, storage: kind })
    else printLine(`stowage serves ${kind === 'memory' ? 'from memory' : options.data} on ${url}`)
    await stop
    await stopServing(server, () => service.close({ graceMs: options.graceMs }))
  } finally {
    await service.close({ graceMs: 0 })
  }
}

/** Nothing is opened here: what is thrown is about an option's value. */
function createService(options: ObjectServiceOptions<unknown>, command: Command): ObjectService {
  try {
    return createObjectService(options)
  } catch (error) {
    return command.error(describeFailure(error))
  }
}

function serviceOptions(options: ServeOptions): Omit<CommonServiceOptions<unknown>, 'access'> {
  const { prefix, memoryBytesMax, cors } = options
  return {
    prefix, memoryBytesMax, limits: limitsOf(options),
    uploadStatus: options.uploadStatus === '201' ? 201 : 200,
    cors: cors === undefined ? undefined : { origins: cors.includes('*') ? '*' : cors },
    logger: FAULTS,
  }
}

function limitsOf(options: ServeOptions): Partial<Limits> {
  return Object.fromEntries((Object.keys(DEFAULT_LIMITS) as (keyof Limits)[]).map((name) => [name, options[name]]))
}

/** What clients do wrong is told to them; what is wrong here is told to whoever runs the server. */
const FAULTS: Logger = {
  error: (fields: { readonly err?: unknown; readonly code?: string; readonly requestId?: string }, message) => {
    const { err, code, requestId } = fields
    // Who is told to come back while the server stops met no fault.
    if (code === 'closing') return
    const where = requestId === undefined ? '' : `request ${requestId} failed with ${code ?? 'no code'}: `
    printNote(`${where}${describeFailure(err instanceof Error && err.message === message ? err : new Error(message, { cause: err }))}`)
  },
}
