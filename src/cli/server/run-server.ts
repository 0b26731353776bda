import type { Server } from 'node:http'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { Access } from '../../access/access.ts'
import { storedAccess } from '../../access/token-store.ts'
import { archives } from '../../archive/server/archives.ts'
import { automation } from '../../automation-server/automation.ts'
import type { IsolationStatus } from '../../automation-server/runner/executors/isolation/command-runner.ts'
import { storedSecretKeys } from '../../automation-server/secret-keys.ts'
import type { Logger } from '../../logger.ts'
import { normalizePrefix } from '../../http/router.ts'
import { DEFAULT_LIMITS, type Limits } from '../../limits.ts'
import type { ObjectService } from '../../service/object-service.ts'
import { continueOnExpect, createObjectService } from '../../service/service.ts'
import type { CommonServiceOptions, ObjectServiceOptions } from '../../service/options.ts'
import { describeFailure } from '../common/exit.ts'
import {
  automationOptionsOf,
  functionProcessOf,
  type FunctionServeOptions,
  isolationLine,
  isolationOf,
} from './function-options.ts'
import { commandLogger, type LogFormat, type LogLevel } from '../common/log.ts'
import {
  type ConnectionLimitHits,
  type ConnectionServeOptions,
  connectionLimitsOf,
  requestRateOf,
} from './connection-options.ts'
import { withHealth } from './health-and-metrics.ts'
import { checkOperations, type OperationsOptions } from './operations-options.ts'
import { quotaOf, type QuotaServeOptions } from './quota-options.ts'
import { type OperationsLine, startOperations } from './operations-server.ts'
import { Readiness } from './readiness.ts'
import { collectGarbage, tuneHeap } from './heap.ts'
import { boundedServer, listen, stopServing } from './http-server.ts'
import { preferMainThread } from './thread-priority.ts'
import { printJson, printLine } from '../common/output.ts'
import { registerFiles } from './serve-functions.ts'
import type { SecretRecipientOptions } from './secret-recipients.ts'
import { signalToStop } from '../common/signals.ts'
import { type PagesLine, pagesLine, pagesOf, type PagesServeOptions, withHome } from './serve-pages.ts'
import { keptTimesOf, upkeepSettingsOf, type UpkeepServeOptions } from './upkeep-options.ts'
import type { StoragePlace } from '../common/shared-storage.ts'
import type { BlobCachePlace } from '../common/storage-address.ts'
import { openStorage, type ServedStorage, servedStorage, type StorageKind } from '../common/storage.ts'

/** The options of `stowage serve` as the parser hands them over. */
export interface ServeOptions
  extends
    Partial<Limits>,
    PagesServeOptions,
    FunctionServeOptions,
    ConnectionServeOptions,
    OperationsOptions,
    QuotaServeOptions,
    UpkeepServeOptions,
    SecretRecipientOptions,
    StoragePlace {
  readonly storage?: StorageKind
  /** The size of the cache in front of blobs in S3; 0 for none. */
  readonly blobCacheBytesMax: number
  readonly port: number
  readonly prefix?: string
  readonly uploadStatus: '200' | '201'
  readonly cors?: readonly string[]
  readonly memoryBytesMax?: number
  readonly memoryWaitMs?: number
  readonly bodyBytesPerSecondMin?: number
  readonly graceMs: number
  readonly logLevel: LogLevel
  readonly logFormat: LogFormat
  readonly json?: boolean
}

/** Serves until a signal stops it. */
export async function runServer(options: ServeOptions, command: Command): Promise<void> {
  tuneHeap(options.memoryBytesMax)
  const isolation = isolationOf(options, options.data)
  const functionProcess = { ...functionProcessOf(options), isolation }
  checkOperations(options, command)
  const stop = signalToStop()
  const logger = commandLogger(options.logLevel, options.logFormat)
  const storage = await servedStorage(options, options.storage, {
    cache: blobCacheOf(options, logger),
    onWait: (note) => logger.warn?.({}, note),
  })
  const { backend, credentials } = storage
  let announce: (url: string) => void = () => undefined
  const announced = new Promise<string>((resolve) => (announce = resolve))
  const secretKeys = storedSecretKeys(credentials)
  const auto = automation({
    secretKeys,
    serverUrl: () => announced,
    ...isolation,
    ...automationOptionsOf(options),
    ...keptTimesOf(options),
  })
  const web = pagesOf(options, auto, storage)
  const extensions = [
    auto,
    archives({ secretKeys, secretRecipients: options.secretRecipient ?? [] }),
    ...(web === undefined ? [] : [web]),
  ]
  const service = createService(
    { backend, access: await accessOf(storage), extensions, ...serviceOptions(options) },
    command,
  )
  let operations: Server | undefined
  try {
    await registerFiles(auto, options.function ?? [], functionProcess)
    await registerFiles(auto, options.functionNetwork ?? [], { ...functionProcess, hasNetwork: true })
    await service.ready()
    const hits: ConnectionLimitHits = new Map()
    const readiness = new Readiness(service, backend, logger)
    const started = await startOperations(service, readiness, options, hits)
    operations = started.server
    const server = boundedServer(
      withHealth(readiness, withHome(web, normalizePrefix(options.prefix), service.node)),
      connectionLimitsOf(options, logger, hits),
    )
    continueOnExpect(server, service)
    collectGarbage()
    preferMainThread()
    const url = `${await listen(server, options)}${normalizePrefix(options.prefix)}`
    announce(url)
    printStarted(options, storage, {
      url,
      pid: process.pid,
      data: options.data,
      storage: storage.kind,
      ...started.line,
      ...(auto.functions().length === 0 ? {} : { functionIsolation: await auto.isolation() }),
      ...(await pagesLine(web, url, options.origin)),
    })
    await stop
    await stopServing(server, () => service.close({ graceMs: options.graceMs }))
  } finally {
    operations?.close().closeAllConnections()
    await service.close({ graceMs: 0 })
  }
}

/** In the data folder, which a server of a shared storage has for itself. */
function blobCacheOf({ data, blobCacheBytesMax }: ServeOptions, logger: Logger): BlobCachePlace | undefined {
  if (blobCacheBytesMax === 0) return undefined
  const onError = (err: unknown): void => logger.warn?.({ err }, `the cache of blobs in ${data} cannot be used`)
  return { path: join(data, 'blob-cache'), sizeBytesMax: blobCacheBytesMax, onError }
}

/**
 * The storage is open from here on. A damaged key in a folder is found before that changes the folder; keys in records
 * may not be made while those are incomplete.
 */
async function accessOf(storage: ServedStorage): Promise<Access<unknown>> {
  try {
    const access = storage.sealed === undefined ? await storedAccess(storage.credentials) : undefined
    await openStorage(storage)
    return access ?? (await storedAccess(storage.credentials))
  } catch (error) {
    await storage.backend.close()
    throw error
  }
}

interface Started extends PagesLine, OperationsLine {
  readonly url: string
  readonly pid: number
  readonly data: string
  readonly storage: ServedStorage['kind']
  /** Set if functions are registered. */
  readonly functionIsolation?: IsolationStatus
}

function printStarted({ json, data }: ServeOptions, { kind, place }: ServedStorage, started: Started): void {
  const { url, healthUrl, metricsUrl, functionIsolation, pagesUrl, signInUrl } = started
  if (json) return printJson(started)
  const beside = metricsUrl === undefined ? (healthUrl ? `, health on ${healthUrl}` : '') : `, metrics on ${metricsUrl}`
  printLine(`stowage serves ${kind === 'memory' ? 'from memory' : place} on ${url}${beside}`)
  if (functionIsolation !== undefined) printLine(isolationLine(functionIsolation))
  if (pagesUrl !== undefined) printLine(`pages for people: ${pagesUrl}`)
  if (signInUrl === undefined)
    printLine(
      `to get a token: stowage token ${kind === 'shared' ? '--records ...' : `--data ${shellWord(data)}`} --project demo --access write`,
    )
  else printLine(`sign in once, within five minutes: ${signInUrl}`)
}

/** As a shell takes it for one word. */
function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** Nothing is opened here: errors are about an option's value. */
function createService(options: ObjectServiceOptions<unknown>, command: Command): ObjectService {
  try {
    return createObjectService(options)
  } catch (error) {
    return command.error(describeFailure(error))
  }
}

function serviceOptions(options: ServeOptions): Omit<CommonServiceOptions<unknown>, 'access'> {
  const { prefix, memoryBytesMax, memoryWaitMs, bodyBytesPerSecondMin, cors } = options
  return {
    prefix,
    memoryBytesMax,
    memoryWaitMs,
    bodyBytesPerSecondMin,
    limits: limitsOf(options),
    quota: quotaOf(options),
    ...upkeepSettingsOf(options),
    requestRate: requestRateOf(options),
    uploadStatus: options.uploadStatus === '201' ? 201 : 200,
    cors: cors === undefined ? undefined : { origins: cors.includes('*') ? '*' : cors },
    logger: commandLogger(options.logLevel, options.logFormat),
    requestLog: 'info',
  }
}

function limitsOf(options: ServeOptions): Partial<Limits> {
  return Object.fromEntries((Object.keys(DEFAULT_LIMITS) as (keyof Limits)[]).map((name) => [name, options[name]]))
}
