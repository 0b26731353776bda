import { type SecretKey, type SecretKeySource, SecretBox } from '../../automation-server/domain/secrets.ts'
import { type AutomationLimits, resolveAutomationLimits } from '../../automation-server/domain/options.ts'
import { checkArtifactName } from '../../automation-server/domain/artifacts.ts'
import { checkNoRun } from '../../automation-server/domain/run-access.ts'
import type { AutomationRecord } from '../../automation-server/domain/automations.ts'
import { projectKey } from '../../automation-server/records/keys.ts'
import { AutomationStore } from '../../automation-server/records/store.ts'
import { checkPage } from '../../automation-server/schemas/checks.ts'
import { checkParams, jsonAnswer, readJson, readQuery } from '../../automation-server/http/json.ts'
import { DeflatePool } from '../../compression/deflate-pool.ts'
import { StowageError } from '../../errors.ts'
import type { Answer, Exchange } from '../../http/exchange.ts'
import { negotiateCoding } from '../../http/negotiate.ts'
import type { Resource } from '../../http/router.ts'
import { unauthenticated } from '../../http/core.ts'
import { releasing, wholeAnswer } from '../../http/selection-answer.ts'
import type { ObjectCursor } from '../../object/graph-store.ts'
import { quoted } from '../../object/id.ts'
import type { ServiceContext, ServiceExtension } from '../../service/extension.ts'
import { storeId } from '../../storage/store-id.ts'
import { importArtifact } from './artifact-import.ts'
import { cursorText, parseCursor } from './cursor.ts'
import { ARCHIVES_AREA } from './openapi.ts'
import { RECIPIENT_TEXT } from './recipient-key.ts'
import { type ImportOutcome, RecordImport } from './record-import.ts'
import { IMPORTED_RECORDS } from './record-shapes.ts'
import { SecretExport, type SecretRecipients } from './secret-export.ts'

/** Options of `archives`. All have defaults. */
export interface ArchivesOptions {
  /**
   * The keys that seal secrets, as automation has them. Sealed secrets that none of them opens are left out of an
   * import.
   */
  readonly secretKeys?: readonly SecretKey[] | SecretKeySource
  /**
   * Public keys, as PEM, for which exports may have secrets sealed: whoever holds the private half can read the secrets
   * of every project in which he may write. `any` for a service that its operator alone calls. None by default.
   */
  readonly secretRecipients?: SecretRecipients
  /** The limits of automation, as the extension `automation` got them. */
  readonly limits?: Partial<AutomationLimits>
  /** Bytes of lines in one page of an export, about: the export holds that much at a time. 4 MB by default. */
  readonly pageBytes?: number
}

const EXPORT = '/api/v1/projects/:projectId/export'
const IMPORT = '/api/v1/projects/:projectId/import'
const PAGE_BYTES = 4 * 1_048_576
const BODY_BYTES_MAX = 16 * 1_048_576
const SEALED_FOR = new RegExp(RECIPIENT_TEXT)
const SHA256 = /^[0-9a-f]{64}$/
const COMPRESSION_LEVEL = 1

/**
 * The server's part of export, import, mirror and backup: lists everything of a project in the order of its arrival,
 * and accepts records that keep their ids. Pass it among the `extensions` of a service over a storage backend.
 */
export function archives<H = unknown>(options: ArchivesOptions = {}): ServiceExtension<H> {
  const { secretKeys = [], secretRecipients = [] } = options
  const secrets = async (): Promise<SecretBox> =>
    new SecretBox('read' in secretKeys ? await secretKeys.read() : secretKeys)
  const secretExport = new SecretExport(secretRecipients, secrets)
  const limits = resolveAutomationLimits(options.limits)
  const compressor = new DeflatePool({ level: COMPRESSION_LEVEL })
  if (!(options.pageBytes === undefined || options.pageBytes >= 1))
    throw new RangeError(`pageBytes is ${options.pageBytes}; it must be 1 or more`)
  let attached: { readonly automation: AutomationStore; readonly storeId: () => Promise<string> } | undefined
  return {
    area: ARCHIVES_AREA,
    attach: (context) => {
      const { backend } = context
      if (backend === undefined)
        throw new TypeError("archives need a storage backend; a service over a host's own object store has none")
      const store = new AutomationStore(backend, context)
      const records = new RecordImport({ store, graphs: context.graphs, pins: context.pins, limits, secrets })
      const idOfStore = (): Promise<string> => storeId(backend.records, context.environment)
      attached = { automation: store, storeId: idOfStore }
      return [
        objectResource(context, compressor, options.pageBytes ?? PAGE_BYTES),
        sealedResource(context, store, secretExport),
        recordResource(context, records),
        markResource(context, records),
        artifactResource(context, store, limits.artifactBytesMax),
        projectResource(context, idOfStore),
      ]
    },
    // A storage that takes no writes now can still be served; the list of projects asks again.
    open: async () => void (await attached?.storeId().catch(() => undefined)),
    removeProject: async (projectId) => attached?.automation.removeProject(projectId),
    close: async () => compressor.close(),
  }
}

/** Everything that the project holds, page by page, in the order in which it came. */
function objectResource<H>(
  { guard, graphs }: ServiceContext<H>,
  compressor: DeflatePool,
  pageBytes: number,
): Resource<H> {
  return {
    path: `${EXPORT}/objects`,
    check: checkParams,
    operations: {
      GET: async (exchange) => {
        const { params, query, signal, headers, memory } = exchange
        await guard(exchange, 'read')
        const [after, until] = [cursorOf(query, 'after'), cursorOf(query, 'end')]
        const coding = negotiateCoding(headers)
        const page = await graphs.pager?.page(params.projectId, {
          signal,
          textBytesMax: pageBytes,
          ...(after === undefined ? {} : { after }),
          ...(until === undefined ? {} : { until }),
        })
        if (page === undefined)
          throw new StowageError('not_found', `the project ${quoted(params.projectId)} holds no objects`)
        exchange.trace.selected(page.selection)
        return releasing(page.selection, memory, () => {
          const answer = wholeAnswer(page.selection, { encoding: { format: 'text', coding }, compressor }, signal)
          const places = { 'Stowage-Next': cursorText(page.next), 'Stowage-End': cursorText(page.end) }
          return { ...answer, headers: { ...answer.headers, ...places } }
        })
      },
    },
  }
}

/**
 * Sealed secrets of automations: of use only to a server that has the key which sealed them, or to the holder of the
 * key for which they are sealed anew.
 */
function sealedResource<H>(
  { guard, authenticate }: ServiceContext<H>,
  store: AutomationStore,
  secretExport: SecretExport,
): Resource<H> {
  return {
    path: `${EXPORT}/automations`,
    check: checkParams,
    operations: {
      GET: async (exchange) => {
        const { headers, method, path, host, query } = exchange
        const principal = await authenticate({ headers, method, path, host })
        const isFlagged = principal?.readsSealedSecrets === true && !query.has('sealedFor')
        checkNoRun(await guard(exchange, isFlagged ? 'read' : 'write'))
        const { sealedFor, ...request } = readQuery(exchange, 'sealedFor')
        checkPage(request)
        if (sealedFor !== undefined && !SEALED_FOR.test(sealedFor))
          throw new StowageError('invalid_request', "sealedFor must be a public key: base64url of its DER's bytes")
        const recipient = sealedFor === undefined ? undefined : secretExport.recipient(sealedFor)
        const { projectId } = exchange.params
        const scope = await store.scope(projectId)
        if (scope === undefined) return jsonAnswer(200, { items: [], cursor: null })
        const { items, cursor } = await store.page<AutomationRecord>(projectKey(scope, 'automation'), request)
        const shown: object[] = []
        for (const { value } of items)
          shown.push(recipient === undefined ? value : await secretExport.automation(value, projectId, recipient))
        return jsonAnswer(200, { items: shown, cursor })
      },
    },
  }
}

function recordResource<H>({ guard, authorize }: ServiceContext<H>, records: RecordImport): Resource<H> {
  return {
    path: `${IMPORT}/records`,
    check: checkParams,
    operations: {
      POST: async (exchange) => {
        const principal = await guard(exchange, 'write')
        checkNoRun(principal)
        const { params, signal } = exchange
        const given = await readJson(exchange, BODY_BYTES_MAX, IMPORTED_RECORDS)
        const outcomes: Record<ImportOutcome, number> = { created: 0, updated: 0, unchanged: 0 }
        for (const record of given) {
          signal.throwIfAborted()
          for (const project of record.kind === 'automation' ? record.value.projects : [])
            if (!(await authorize(principal, project, 'write')))
              throw new StowageError('forbidden', `the right to write is missing in the project ${quoted(project)}`)
          outcomes[await records.take(params.projectId, record, signal)]++
        }
        return jsonAnswer(200, outcomes)
      },
    },
  }
}

/** How far a mirror has come, as it said itself. */
function markResource<H>({ guard }: ServiceContext<H>, records: RecordImport): Resource<H> {
  return {
    path: `${IMPORT}/marks/:sourceId`,
    check: checkParams,
    operations: {
      GET: async (exchange) => {
        checkNoRun(await guard(exchange, 'write'))
        const { projectId, sourceId } = exchange.params
        return jsonAnswer(200, { cursor: await records.cursorOf(projectId, sourceId) })
      },
    },
  }
}

function artifactResource<H>({ guard }: ServiceContext<H>, store: AutomationStore, bytesMax: number): Resource<H> {
  return {
    path: `${IMPORT}/artifacts/:artifactId`,
    check: checkParams,
    operations: {
      POST: async (exchange) => {
        checkNoRun(await guard(exchange, 'write'))
        const { params, query, body, signal } = exchange
        const [runId, name, sha256] = ['runId', 'name', 'sha256'].map((key) => neededParameter(query, key))
        checkParams({ projectId: params.projectId, runId })
        checkArtifactName(name)
        if (!SHA256.test(sha256))
          throw new StowageError('invalid_request', 'sha256 must be 64 hex digits in lower case')
        const artifact = { id: params.artifactId, runId, name, sha256, content: body.bytes() }
        return jsonAnswer(200, {
          outcome: await importArtifact({ store, bytesMax }, params.projectId, artifact, signal),
        })
      },
    },
  }
}

/** Ids of the projects in which the caller may read, one JSON string a line. */
function projectResource<H>(context: ServiceContext<H>, idOfStore: () => Promise<string>): Resource<H> {
  return {
    path: '/api/v1/projects',
    operations: {
      GET: async (exchange): Promise<Answer> => {
        const { headers, method, path, host } = exchange
        const principal = await context.authenticate({ headers, method, path, host })
        if (principal === undefined) throw unauthenticated({}, { headers, method, path, host })
        return {
          status: 200,
          headers: {
            'Content-Type': 'application/x-ndjson; charset=utf-8',
            'Cache-Control': 'private, no-store',
            'Stowage-Store': await idOfStore(),
          },
          body: projectLines(context, principal),
        }
      },
    },
  }
}

async function* projectLines<H>(
  { projects, authorize }: ServiceContext<H>,
  principal: Parameters<ServiceContext<H>['authorize']>[0],
): AsyncGenerator<Uint8Array> {
  for await (const ids of projects()) {
    let lines = ''
    for (const id of ids) if (await authorize(principal, id, 'read')) lines += `${JSON.stringify(id)}\n`
    if (lines !== '') yield Buffer.from(lines)
  }
}

function neededParameter(query: Exchange<unknown>['query'], name: string): string {
  const value = query.get(name)
  if (value === null) throw new StowageError('invalid_request', `the parameter "${name}" is missing`)
  return value
}

function cursorOf(query: Exchange<unknown>['query'], name: 'after' | 'end'): ObjectCursor | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const cursor = parseCursor(text)
  if (cursor !== undefined) return cursor
  throw new StowageError(
    'invalid_request',
    `"${name}" is ${quoted(text)}; it must be the ${name === 'after' ? 'Stowage-Next' : 'Stowage-End'} of a page`,
  )
}
