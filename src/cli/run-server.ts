import type { Server } from 'node:http'
import type { Command } from 'commander'
import { accessFromFolder } from '../access/token-store.ts'
import { automation } from '../automation-server/automation.ts'
import { secretKeyFromFolder } from '../automation-server/secret-key-file.ts'
import { normalizePrefix } from '../http/router.ts'
import { DEFAULT_LIMITS, type Limits } from '../limits.ts'
import { continueOnExpect, createObjectService, type ObjectService } from '../service.ts'
import type { CommonServiceOptions, ObjectServiceOptions } from '../service-options.ts'
import { describeFailure } from './exit.ts'
import { automationOptionsOf, functionProcessOf, type FunctionServeOptions } from './function-options.ts'
import { commandLogger, type LogFormat, type LogLevel } from './log.ts'
import { metricsServer, withHealth } from './operations.ts'
import { boundedServer, listen, stopServing } from './http-server.ts'
import { printJson, printLine } from './output.ts'
import { registerFiles } from './serve-functions.ts'
import { signalToStop } from './signals.ts'
import { type PagesLine, pagesLine, pagesOf, type PagesServeOptions, withHome } from './serve-pages.ts'
import { type StorageKind, storageOf } from './storage.ts'

/** The options of `stowage serve` as the parser hands them over. */
export interface ServeOptions extends Partial<Limits>, PagesServeOptions, FunctionServeOptions {
  readonly storage?: StorageKind
  readonly port: number
  readonly prefix?: string
  readonly uploadStatus: '200' | '201'
  readonly cors?: readonly string[]
  readonly memoryBytesMax?: number
  readonly connectionsMax: number
  readonly graceMs: number
  readonly logLevel: LogLevel
  readonly logFormat: LogFormat
  /** `true` for the default port. */
  readonly metrics?: number | true
  readonly metricsHost: string
  readonly json?: boolean
}

/** Where exporters for Prometheus listen by custom. */
const METRICS_PORT = 9_464

/** Serves until a signal tells it to stop. */
export async function runServer(options: ServeOptions, command: Command): Promise<void> {
  const functionProcess = functionProcessOf(options)
  const stop = signalToStop()
  const { backend, kind } = await storageOf(options.data, options.storage)
  let announce: (url: string) => void = () => undefined
  const announced = new Promise<string>((resolve) => (announce = resolve))
  const auto = automation({
    secretKeys: async () => [await secretKeyFromFolder(options.data)],
    serverUrl: () => announced,
    ...automationOptionsOf(options),
  })
  const web = pagesOf(options, auto)
  const extensions = [auto, ...(web === undefined ? [] : [web])]
  const service = createService(
    { backend, access: await accessFromFolder(options.data), extensions, ...serviceOptions(options) },
    command,
  )
  let metrics: Server | undefined
  try {
    await registerFiles(auto, options.function ?? [], functionProcess)
    await service.ready()
    if (options.metrics !== undefined) metrics = metricsServer(service)
    const metricsUrl = metrics === undefined ? undefined : await listenForMetrics(metrics, options)
    const server = boundedServer(
      withHealth(service, withHome(web, normalizePrefix(options.prefix), service.node)),
      options.connectionsMax,
    )
    continueOnExpect(server, service)
    const url = `${await listen(server, options)}${normalizePrefix(options.prefix)}`
    announce(url)
    printStarted(options, {
      url,
      pid: process.pid,
      data: options.data,
      storage: kind,
      ...(metricsUrl === undefined ? {} : { metricsUrl }),
      ...pagesLine(web, url),
    })
    await stop
    await stopServing(server, () => service.close({ graceMs: options.graceMs }))
  } finally {
    metrics?.close().closeAllConnections()
    await service.close({ graceMs: 0 })
  }
}

interface Started extends PagesLine {
  readonly url: string
  readonly pid: number
  readonly data: string
  readonly storage: StorageKind
  readonly metricsUrl?: string
}

function printStarted({ json }: ServeOptions, started: Started): void {
  const { url, data, storage, metricsUrl, signInUrl } = started
  if (json) return printJson(started)
  printLine(
    `stowage serves ${storage === 'memory' ? 'from memory' : data} on ${url}${metricsUrl === undefined ? '' : `, metrics on ${metricsUrl}`}`,
  )
  if (signInUrl !== undefined) printLine(`sign in once, within five minutes: ${signInUrl}`)
}

async function listenForMetrics(server: Server, { metrics, metricsHost }: ServeOptions): Promise<string> {
  const port = typeof metrics === 'number' ? metrics : METRICS_PORT
  return `${await listen(server, { host: metricsHost, port })}/metrics`
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
    prefix,
    memoryBytesMax,
    limits: limitsOf(options),
    uploadStatus: options.uploadStatus === '201' ? 201 : 200,
    cors: cors === undefined ? undefined : { origins: cors.includes('*') ? '*' : cors },
    logger: commandLogger(options.logLevel, options.logFormat),
    requestLog: 'info',
  }
}

function limitsOf(options: ServeOptions): Partial<Limits> {
  return Object.fromEntries((Object.keys(DEFAULT_LIMITS) as (keyof Limits)[]).map((name) => [name, options[name]]))
}
