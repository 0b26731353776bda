import { expectAssignable, expectError, expectType } from 'tsd'
import type { StowageError, StowageErrorCode } from 'stowage'
import {
  type Client,
  ClientError,
  createClient,
  type DagObject,
  deserialize,
  type HasResult,
  type InlineOrigin,
  memoryCache,
  type ObjectCache,
  type TextWithBase,
  type ObjectText,
  type ObjectTexts,
  Origins,
  type Project,
  type PruneResult,
  type SendResult,
  serialize,
  type UploadProgress,
  type UploadResult,
} from 'stowage/client'
import { type LevelCache, levelCache } from 'stowage/client/level'

const client = createClient({ url: 'http://localhost', token: 'token' })
expectType<Client>(client)
const project = client.project('demo')
expectType<Project>(project)

// A token is required, and `undefined` has to be written.
createClient({
  url: new URL('http://localhost'),
  token: async () => 'token',
  retry: false,
  cache: memoryCache(),
  fetch,
})
createClient({
  url: 'http://localhost',
  token: undefined,
  retry: { attemptsMax: 3, onRetry: (error) => expectType<ClientError>(error) },
})
expectError(createClient({ url: 'http://localhost' }))
expectError(createClient({ token: 'token' }))
expectError(createClient({ url: 'http://localhost', token: 5 }))
expectError(createClient({ url: 'http://localhost', token: 'token', retry: true }))
expectError(createClient({ url: 'http://localhost', token: 'token', cache: new Map() }))
expectError(client.project())

// A retention rule is applied as it is, or another one in its place.
expectType<Promise<PruneResult>>(project.models.prune('id'))
expectType<Promise<PruneResult>>(project.models.prune('id', { dryRun: true, retention: { keepLastCount: 20 } }))
expectError(project.models.prune('id', { retention: { keepFirstCount: 20 } }))

// Uploads take objects and texts, one by one or in arrays, at once or as they come; nothing else.
declare const wall: { readonly height: number }
declare const source: AsyncIterable<readonly ObjectText[]>
expectType<Promise<UploadResult>>(project.upload([wall, { id: 'a', json: '{"id":"a"}' }, [wall]]))
expectType<Promise<UploadResult>>(
  project.upload(source, {
    signal: new AbortController().signal,
    onProgress: (progress) => expectType<UploadProgress>(progress),
  }),
)
expectError(project.upload('objects'))
expectError(project.upload(['a text']))
expectError(project.upload(wall))
expectError(project.upload(Promise.resolve([wall])))
expectError(project.upload([wall], { body: 'zip' }))
const based: TextWithBase = { id: 'b', json: '{"id":"b"}', base: { id: 'a', json: '{"id":"a"}' } }
expectType<Promise<UploadResult>>(project.upload([based]))
expectError<TextWithBase>({ id: 'b', json: '{"id":"b"}', base: 'a' })
expectType<Promise<SendResult>>(project.send(wall, { typeField: 'type', concurrency: 2 }))
expectError(project.send('a text'))

// Downloads are batches, of objects or of texts, and can be told what the objects are.
interface Wall {
  readonly id: string
  readonly height: number
}
expectType<AsyncIterable<readonly DagObject[]>>(project.graph('root', { have: ['old'], verifyIds: true, strict: true }))
expectType<AsyncIterable<readonly Wall[]>>(project.graph<Wall>('root'))
expectType<AsyncIterable<readonly ObjectText[]>>(project.graphTexts('root', { cache: false }))
expectType<AsyncIterable<readonly DagObject[]>>(project.list(new Set(['a'])))
expectType<AsyncIterable<readonly ObjectText[]>>(
  project.listTexts(['a'], { onMissing: (ids) => expectType<readonly string[]>(ids) }),
)
expectType<Promise<DagObject | undefined>>(project.get('a'))
expectType<Promise<Wall | undefined>>(project.get<Wall>('a'))
expectType<Promise<HasResult>>(project.has(['a']))
expectType<Promise<DagObject>>(project.receive('root'))
expectType<Promise<{ name: string }>>(project.receive<{ name: string }>('root', { keepIds: false }))
expectError(project.graph<{ height: number }>('root'))
expectError(project.graph('root', { have: 'old' }))
declare const texts: ObjectTexts
expectType<AsyncIterable<readonly DagObject[]>>(project.graph('root', { have: ['old'], bases: texts }))
expectError(project.graph('root', { have: ['old'], bases: new Map([['a', '{}']]) }))
expectError(project.receive('root', { have: ['old'] }))
expectError(project.list([1]))
declare const object: DagObject
expectType<unknown>(object.anything)
expectError((object.id = 'another'))

// The serializer without a service.
expectType<AsyncGenerator<readonly ObjectText[]>>(serialize(wall, { origins: new Origins() }))
expectError(serialize(5))
expectType<Promise<DagObject>>(deserialize(serialize(wall), 'root'))
expectError(deserialize([object], 'root'))

// Caches.
expectType<ObjectCache>(memoryCache({ charactersMax: 1_000 }))
expectType<LevelCache>(levelCache({ path: 'folder' }))
expectAssignable<ObjectCache & AsyncDisposable>(levelCache({ path: 'folder' }))
expectError(levelCache())

// Errors: the server's codes and those of the client are one closed union.
const error = new ClientError('timed_out', 'late', { isRetryable: true })
expectType<StowageErrorCode>(error.code)
expectType<number>(error.statusCode)
expectType<boolean>(error.isAnswered)
expectAssignable<StowageError>(error)
expectError(new ClientError('something_else', 'message'))

// What is remembered of a received value can be looked at; how long its arrays may become can be told.
expectType<ReadonlyMap<object, InlineOrigin> | undefined>(new Origins().ofObject(wall)?.inline)
expectType<Promise<DagObject>>(project.receive('root', { joinedItemsMax: 1_000 }))
expectError(project.receive('root', { joinedItemsMax: '1000' }))
