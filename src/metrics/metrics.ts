import type { Counter, Gauge, Registry } from 'prom-client'
import type { ServiceEvent } from '../events/events.ts'
import type { MemoryInUse, ProjectTotals, StoreTotals } from '../object/graph-store.ts'
import type { ObjectService } from '../service/object-service.ts'
import type { ServiceStatus } from '../service/status.ts'
import { loadPromClient } from './prom-client.ts'

/** Which registry the metrics go to, and whose events they count. */
export interface MetricsOptions {
  /** The host's. Two services on one registry need different prefixes. */
  readonly registry: Registry
  /** The service to measure. */
  readonly service: Pick<ObjectService, 'subscribe' | 'status' | 'totals'>
  /** The prefix of all names. `stowage_` by default. */
  readonly prefix?: string
}

/** The metrics of one service in one registry, until they are removed. */
export interface Metrics {
  /** Takes the metrics out of the registry and listens no more. May be called more than once. */
  remove(): void
}

/** From a request for one object to the download of a large model over a slow line. */
const DURATION_BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]

/**
 * Counts the events of a service in the registry of the host. Labels are routes, methods, statuses and codes. Only the
 * gauges of storage have the ids of projects as labels, those of the 100 largest: never another id or anything else that
 * clients choose. Throws an `Error` if the package `prom-client` is not installed,
 * and prom-client's own error if the registry already has a metric of the same name.
 */
export function createMetrics(options: MetricsOptions): Metrics {
  const { registry, service, prefix = 'stowage_' } = options
  const names: string[] = []
  const remove = (): void => {
    for (const name of names.splice(0)) registry.removeSingleMetric(name)
  }
  try {
    const counted = counters(registry, prefix, names)
    gauges(options, prefix, names)
    storageGauges(options, prefix, names)
    const unsubscribe = service.subscribe(counted)
    return {
      remove: () => {
        unsubscribe()
        remove()
      },
    }
  } catch (error) {
    remove()
    throw error
  }
}

function counters(registry: Registry, prefix: string, names: string[]): (event: ServiceEvent) => void {
  const { Counter: NewCounter, Histogram } = loadPromClient()
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> => {
    const made = new NewCounter({ name: `${prefix}${name}`, help, labelNames, registers })
    names.push(`${prefix}${name}`)
    return made
  }
  const requests = counter('requests_total', 'Requests over HTTP that are over.', ['method', 'route', 'status'])
  const received = counter('received_bytes_total', 'Bytes of request bodies that were read.', ['route'])
  const sent = counter('sent_bytes_total', 'Bytes of answers that were sent.', ['route'])
  const cut = counter(
    'incomplete_answers_total',
    'Answers that ended before their last byte: the client left, or something failed.',
    ['route'],
  )
  const uploads = counter('uploads_total', 'Uploads that were stored, over HTTP and in process.', [])
  const arrived = counter('uploaded_objects_total', 'Objects that they contained.', [])
  const stored = counter('stored_objects_total', 'New objects.', [])
  const differing = counter(
    'differing_objects_total',
    'Objects that arrived with a text other than the stored one.',
    [],
  )
  const downloads = counter('downloads_total', 'Answers with objects, over HTTP and in process.', ['planned'])
  const sentObjects = counter('downloaded_objects_total', 'Objects of these answers.', [])
  const errors = counter('errors_total', 'Failed requests. A client that disconnects is not a failure.', ['code'])
  const limits = counter('limit_hits_total', 'Requests that were refused at a bound.', ['limit'])
  const findings = counter(
    'storage_findings_total',
    'Times that something read from the storage was damaged or missing.',
    [],
  )
  const durations = new Histogram({
    name: `${prefix}request_duration_seconds`,
    help: 'Time from the arrival of a request to the end of its answer.',
    labelNames: ['route'],
    buckets: DURATION_BUCKETS_S,
    registers,
  })
  names.push(`${prefix}request_duration_seconds`)
  const tellUpkeep = upkeepCounters(counter)
  return (event) => {
    tellUpkeep(event)
    if (event.type === 'request') {
      const { method, route = 'none', status, bytesReceived, bytesSent, isComplete, durationMs } = event
      requests.inc({ method: METHODS.has(method) ? method : 'other', route, status: String(status) })
      durations.observe({ route }, durationMs / 1_000)
      received.inc({ route }, bytesReceived)
      sent.inc({ route }, bytesSent)
      if (!isComplete) cut.inc({ route })
    } else if (event.type === 'upload') {
      uploads.inc()
      arrived.inc(event.objects)
      stored.inc(event.created)
      differing.inc(event.differing)
    } else if (event.type === 'download') {
      downloads.inc({ planned: String(event.isPlanned) })
      sentObjects.inc(event.objects)
    } else if (event.type === 'error') errors.inc({ code: event.code })
    else if (event.type === 'limit') limits.inc({ limit: event.limit })
    else if (event.type === 'finding') findings.inc()
  }
}

/** Collection, compaction, deletions and pins. */
function upkeepCounters(
  counter: <L extends string>(name: string, help: string, labelNames: readonly L[]) => Counter<L>,
): (event: ServiceEvent) => void {
  const collected = counter('collected_objects_total', 'Objects that were condemned, freed or restored.', ['step'])
  const collectedBytes = counter('collected_json_bytes_total', 'Their bytes of JSON.', ['step'])
  const merges = counter('pack_merges_total', 'Merges of packs that took effect.', [])
  const mergedPacks = counter('replaced_packs_total', 'How many fewer packs there are by merges.', [])
  const freed = counter('compacted_bytes_total', 'How many bytes fewer the packs have by merges.', [])
  const deletions = counter('deletions_total', 'Projects, models and versions that were deleted or restored.', [
    'kind',
    'action',
  ])
  const pins = counter('pin_changes_total', 'Pins that were added or removed.', ['action'])
  return (event) => {
    if (event.type === 'collection') {
      collected.inc({ step: 'condemned' }, event.condemnedObjects)
      collected.inc({ step: 'freed' }, event.freedObjects)
      collected.inc({ step: 'restored' }, event.restoredObjects)
      collectedBytes.inc({ step: 'condemned' }, event.condemnedJsonBytes)
      collectedBytes.inc({ step: 'freed' }, event.freedJsonBytes)
      collectedBytes.inc({ step: 'restored' }, event.restoredJsonBytes)
    } else if (event.type === 'compaction') {
      merges.inc(event.merges)
      mergedPacks.inc(Math.max(0, event.packsBefore - event.packsAfter))
      freed.inc(Math.max(0, event.storedBytesBefore - event.storedBytesAfter))
    } else if (event.type === 'deletion') deletions.inc({ kind: event.kind, action: event.action })
    else if (event.type === 'pin') pins.inc({ action: event.action })
  }
}

/** Clients choose the method of a request; a label must have few values. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

type Reading = (status: ServiceStatus) => number

const GAUGES: readonly (readonly [name: string, help: string, read: Reading])[] = [
  [
    'ready',
    '1 while the service answers requests, 0 while it opens or closes and after its storage has failed.',
    ({ state }) => (state === 'ready' ? 1 : 0),
  ],
  [
    'requests_in_flight',
    'Requests and calls in process that are under way.',
    ({ requestsInFlight }) => requestsInFlight,
  ],
  ['uploads_in_flight', 'Uploads that are being stored.', ({ uploadsInFlight }) => uploadsInFlight],
  ['downloads_in_flight', 'Answers with objects that are being sent.', ({ downloadsInFlight }) => downloadsInFlight],
  [
    'request_memory_bytes',
    'Memory that requests hold, the buffers of answers included.',
    ({ requestMemory }) => heldBytes(requestMemory),
  ],
  ['request_memory_limit_bytes', 'Memory that requests may hold.', ({ requestMemory }) => limitBytes(requestMemory)],
  ['answer_memory_bytes', 'Memory that the buffers of answers hold.', ({ answerMemory }) => heldBytes(answerMemory)],
  [
    'answer_memory_limit_bytes',
    'Memory beyond which the buffers of answers are as small as can be.',
    ({ answerMemory }) => limitBytes(answerMemory),
  ],
]

function heldBytes(memory: MemoryInUse | undefined): number {
  return memory?.heldBytes ?? 0
}

function limitBytes(memory: MemoryInUse | undefined): number {
  return memory?.limitBytes ?? 0
}

function gauges({ registry, service }: MetricsOptions, prefix: string, names: string[]): void {
  const { Gauge: NewGauge } = loadPromClient()
  for (const [name, help, read] of GAUGES) {
    const collect = function (this: Gauge): void {
      this.set(read(service.status()))
    }
    registry.registerMetric(new NewGauge({ name: `${prefix}${name}`, help, registers: [], collect }))
    names.push(`${prefix}${name}`)
  }
}

type Amount = readonly [name: string, help: string, member: keyof ProjectTotals]

const AMOUNTS: readonly Amount[] = [
  ['project_objects', 'Objects of the project; of all but the 100 largest projects without a project.', 'objects'],
  ['project_json_bytes', 'Their bytes of JSON.', 'jsonBytes'],
  ['project_stored_bytes', 'Bytes of the active packs of the project.', 'storedBytes'],
]

/** No project has this id. For Prometheus, such a series lacks the label. */
const OTHER_PROJECTS = ''

/** What the projects hold. The gauges have no values while that cannot be read. */
function storageGauges({ registry, service }: MetricsOptions, prefix: string, names: string[]): void {
  const { Gauge: NewGauge } = loadPromClient()
  const read = async (): Promise<StoreTotals | undefined> => {
    if (service.status().state !== 'ready') return undefined
    // A storage that fails must not take the other metrics along, which tell of it.
    return service.totals().catch(() => undefined)
  }
  const gauge = (name: string, help: string, labelNames: string[], set: (to: Gauge, totals: StoreTotals) => void) => {
    const collect = async function (this: Gauge): Promise<void> {
      const totals = await read()
      this.reset()
      if (totals !== undefined) set(this, totals)
      // A gauge without labels is reset to 0.
      else if (labelNames.length === 0) this.remove()
    }
    registry.registerMetric(new NewGauge({ name: `${prefix}${name}`, help, labelNames, registers: [], collect }))
    names.push(`${prefix}${name}`)
  }
  gauge('projects', 'Projects that hold objects.', [], (to, { projects }) => to.set(projects))
  gauge('uncounted_projects', 'Projects whose records of their size are lost or damaged.', [], (to, totals) =>
    to.set(totals.uncountedProjects),
  )
  for (const [name, help, member] of AMOUNTS)
    gauge(name, help, ['project'], (to, { largest, others }) => {
      for (const one of largest) to.set({ project: one.projectId }, one[member])
      to.set({ project: OTHER_PROJECTS }, others[member])
    })
}
