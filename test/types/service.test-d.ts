import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd'
import {
  answerClientErrors,
  continueOnExpect,
  type ConnectionLimitEvent,
  limitConnections,
  createObjectService,
  type Endpoint,
  type ObjectRecord,
  type ObjectService,
  type ObjectServiceOptions,
  type ObjectStore,
  openAccess,
  type ProjectObjects,
  type StowageError,
  type UploadSummary,
} from 'stowage'
import { memoryBackend } from 'stowage/memory'

const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
expectType<ObjectService>(service)

// Access is required, and there is one place where objects are.
expectError(createObjectService({ backend: memoryBackend() }))
expectError(createObjectService({ access: openAccess() }))
declare const store: ObjectStore
expectType<ObjectService>(createObjectService({ store, access: openAccess() }))

// Options.
expectAssignable<ObjectServiceOptions<unknown>>({
  store,
  access: openAccess(),
  prefix: '/models',
  limits: { objectBytesMax: 1_000 },
  uploadStatus: 201,
  errors: 'next',
  onError: (error: StowageError) => console.error(error.code),
  newId: () => 'id',
})
expectNotAssignable<ObjectServiceOptions<unknown>>({ store, access: openAccess(), uploadStatus: 204 })
expectNotAssignable<ObjectServiceOptions<unknown>>({ store, access: openAccess(), errors: 'throw' })
expectNotAssignable<ObjectServiceOptions<unknown>>({ store, access: openAccess(), limits: { objectBytesMax: '10mb' } })

// Hosts: plain node, fetch, and a host's own router. Both cores can be passed around by themselves.
expectAssignable<(req: IncomingMessage, res: ServerResponse) => void>(service.node)
const server = createServer(service.node)
continueOnExpect(server, service)
expectType<void>(answerClientErrors(server))
expectType<void>(
  limitConnections(server, {
    trustProxy: { proxies: ['loopback'], header: 'forwarded' },
    onLimit: (event) => expectType<ConnectionLimitEvent>(event),
  }),
)
limitConnections(server, { trustProxy: { proxies: 2 } })
expectError(limitConnections(server, { trustProxy: { proxies: 'loopback' } }))
expectType<Promise<Response>>(service.fetch(new Request('http://localhost/')))
for (const name of ['diff', 'upload', 'single', 'list', 'graph', 'stream'] as const)
  expectAssignable<Endpoint>(service.endpoints[name])
expectType<'GET' | 'POST'>(service.endpoints.diff.method)
expectError(service.endpoints.remove)

// What access is told of the host's request is what `fetch` is given.
interface Host {
  readonly user: string
}
const hosted = createObjectService<Host>({
  store,
  access: {
    authenticate: ({ host }) => {
      expectType<string>(host.user)
      return { subject: host.user, projects: new Map() }
    },
    authorize: () => true,
  },
})
expectType<Promise<Response>>(hosted.fetch(new Request('http://localhost/'), { user: 'ada' }))
expectError(hosted.fetch(new Request('http://localhost/'), { user: 1 }))

// In process.
const project = service.project('demo')
expectType<ProjectObjects>(project)
declare const body: AsyncIterable<Uint8Array>
expectType<Promise<UploadSummary>>(project.upload(body, 'application/gzip'))
expectError(project.upload(body, 'text/plain'))
expectType<Promise<ReadonlySet<string>>>(project.has(['a']))
expectType<Promise<ObjectRecord | undefined>>(project.get('a'))
expectType<AsyncIterable<readonly ObjectRecord[]>>(
  project.graph('root', { have: ['old'], signal: new AbortController().signal }),
)
expectType<Promise<void>>(project.remove())
expectType<AsyncIterable<readonly string[]>>(service.projects())

// Its life.
expectType<Promise<void>>(service.ready())
expectType<Promise<void>>(service.close({ graceMs: 1_000 }))
expectAssignable<AsyncDisposable>(service)
