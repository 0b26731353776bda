import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { ARCHIVES_AREA } from '../../src/archive/server/openapi.ts'
import { archives } from '../../src/archive/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { AUTOMATION_AREA } from '../../src/automation-server/schemas/openapi/area.ts'
import { createObjectService, ERROR_STATUS, openAccess } from '../../src/index.ts'
import { composeDocument } from '../../src/openapi/description/compose.ts'
import { openApiDocument } from '../../src/openapi/document.ts'
import type { Examples, MediaType, OpenApiDocument } from '../../src/openapi/description/types.ts'
import { served } from '../http/served.ts'
import { ask } from '../mounts/ask.ts'
import { Conformance } from './conformance.ts'

const document = openApiDocument({ server: '/', areas: [AUTOMATION_AREA, ARCHIVES_AREA] })
const conformance = new Conformance(document)

test('the document is OpenAPI 3.1 and describes version 1.0.0', async () => {
  const { valid, errors } = await new Validator().validate(
    JSON.parse(JSON.stringify(document)) as Record<string, unknown>,
  )
  assert.ok(valid, JSON.stringify(errors))
  assert.equal(document.info.version, '1.0.0')
})

test('every reference resolves, and every component is used', () => {
  const used = new Set(JSON.stringify(document).match(/(?<="\$ref":")[^"]+/g))
  for (const reference of used) assert.notEqual(conformance.resolve({ $ref: reference }), undefined, reference)
  const answersOfNoOperation = new Set(
    ['RouteNotFound', 'MethodNotAllowed'].map((name) => `#/components/responses/${name}`),
  )
  for (const [section, named] of Object.entries(document.components) as [string, object][]) {
    if (section === 'securitySchemes') continue
    for (const name of Object.keys(named)) {
      const reference = `#/components/${section}/${name}`
      assert.ok(used.has(reference) || answersOfNoOperation.has(reference), `${reference} is unused`)
    }
  }
})

test('operation ids are the names of the contract, each once', () => {
  const ids = conformance.operations().map(({ operation }) => operation.operationId)
  assert.equal(new Set(ids).size, ids.length)
  for (const name of ['checkObjectsExist', 'uploadObjects', 'getSingleObject', 'getObjects', 'getObjectWithChildren'])
    assert.ok(ids.includes(name), name)
})

test('the routes of a service are the paths of its document, method by method', async (t) => {
  const { port, service } = await served(t, { extensions: [automation(), archives()] })
  for (const [template, item] of Object.entries(document.paths)) {
    const { headers } = await ask(port, { method: 'OPTIONS', path: template.replaceAll(/\{[^}]+\}/g, 'x') })
    const documented = Object.keys(item)
      .filter((key) => key !== 'parameters')
      .map((method) => method.toUpperCase())
    assert.deepEqual((headers.allow ?? '').split(', ').sort(), documented.sort(), template)
  }
  const pathPrefixes = new Set(Object.keys(document.paths).map((template) => template.split('{')[0]))
  assert.deepEqual(new Set(service.pathPrefixes), pathPrefixes)
  const endpoints = Object.values(service.endpoints).map(({ path }) => path.replaceAll(/:(\w+)/g, '{$1}'))
  for (const path of endpoints) assert.ok(path in document.paths, path)
})

/** What no route answers with: functions are registered in process. */
/** Not answers of an operation: of the library alone, or of the server before it knows which operation is asked for. */
const NOT_OVER_HTTP: ReadonlySet<string> = new Set([
  'invalid_inputs_schema',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
])

/** With its share of what stands once. */
const CHARACTERS_PER_OPERATION_MAX = 3_200

test('the shipped document is small because operations share components', () => {
  const { length } = JSON.stringify(document)
  const operations = conformance.operations().length
  assert.ok(length < CHARACTERS_PER_OPERATION_MAX * operations, `${length} characters for ${operations} operations`)
})

test('every error code is documented with its own status', () => {
  const told = new Map<string, Set<string>>()
  const responses = [
    ...conformance
      .operations()
      .flatMap((found) => Object.keys(found.operation.responses).map((status) => conformance.response(found, status))),
    ...Object.values(document.components.responses ?? {}),
  ]
  for (const response of responses) {
    const schema = response.content?.['application/json']?.schema?.allOf?.[1].properties
    for (const code of schema?.code?.enum ?? [])
      told.set(String(code), (told.get(String(code)) ?? new Set<string>()).add(String(schema?.statusCode?.const)))
  }
  assert.deepEqual(
    Object.fromEntries([...told].map(([code, statuses]) => [code, [...statuses]])),
    Object.fromEntries(
      Object.entries(ERROR_STATUS)
        .filter(([code]) => !NOT_OVER_HTTP.has(code))
        .map(([code, status]) => [code, [String(status)]]),
    ),
  )
})

test('every example matches its schema', () => {
  let seen = 0
  const check = (pointer: readonly string[], examples: Examples | undefined): void => {
    for (const [name, { value }] of Object.entries(examples ?? {})) {
      seen++
      assert.deepEqual(conformance.valueProblems([...pointer, 'schema'], value), [], `${pointer.join('/')} ${name}`)
    }
  }
  const checkContent = (pointer: readonly string[], content: Readonly<Record<string, MediaType>> | undefined): void => {
    for (const [type, media] of Object.entries(content ?? {})) check([...pointer, 'content', type], media.examples)
  }
  for (const [name, parameter] of Object.entries(document.components.parameters ?? {}))
    check(['components', 'parameters', name], parameter.examples)
  for (const found of conformance.operations()) {
    const { template, method, operation } = found
    checkContent(['paths', template, method, 'requestBody'], operation.requestBody?.content)
    for (const status of Object.keys(operation.responses))
      checkContent(conformance.responsePointer(found, status), conformance.response(found, status).content)
  }
  assert.ok(seen > 50, `${seen} examples`)
})

test('a service describes itself below its prefix, without authentication', async (t) => {
  const { port } = await served(t, {
    prefix: '/models/',
    access: { authenticate: () => undefined, authorize: () => false },
  })
  const path = '/models/api/openapi.json'
  const whole = await ask(port, { path })
  assert.equal(whole.status, 200)
  assert.deepEqual(
    JSON.parse(Buffer.from(whole.body, 'latin1').toString()),
    JSON.parse(JSON.stringify(openApiDocument({ server: '/models' }))),
  )
  assert.equal(openApiDocument({ server: '/models' }).servers[0].url, '/models')
  const { etag } = whole.headers
  assert.match(whole.headers['cache-control'], /^public/)
  const head = await ask(port, { method: 'HEAD', path })
  assert.deepEqual(
    [head.headers.etag, head.headers['content-length'], head.body],
    [etag, whole.headers['content-length'], ''],
  )
  assert.deepEqual(
    await ask(port, { path, headers: { 'if-none-match': etag } }).then(({ status, body }) => [status, body]),
    [304, ''],
  )
  assert.equal((await ask(port, { path, headers: { 'if-match': '"other"' } })).status, 412)
  assert.equal((await ask(port, { path: '/api/openapi.json' })).status, 404)
})

test('a service describes automation only if it has it', async () => {
  for (const extensions of [[], [automation()]]) {
    const service = createObjectService({ backend: memoryBackend(), access: openAccess(), extensions })
    const described = (await (
      await service.fetch(new Request('http://in.process/api/openapi.json'))
    ).json()) as OpenApiDocument
    assert.deepEqual(
      described,
      JSON.parse(
        JSON.stringify(openApiDocument({ server: '..', areas: extensions.flatMap(({ area }) => area ?? []) })),
      ),
    )
    assert.equal('/api/v1/projects/{projectId}/runs/{runId}' in described.paths, extensions.length > 0)
    await service.close()
  }
})

test('areas that use one name for two things are refused', () => {
  const { openapi, info, servers, security } = document
  const area = (path: string): Parameters<typeof composeDocument>[1][number] => ({
    tags: [],
    paths: { [path]: {} },
    components: { schemas: { [path]: {} } },
  })
  const frame = { openapi, info, servers, security }
  assert.deepEqual(Object.keys(composeDocument(frame, [area('/a'), area('/b')]).paths), ['/a', '/b'])
  assert.throws(() => composeDocument(frame, [area('/a'), area('/a')]), {
    name: 'TypeError',
    message: /"\/a" differently/,
  })
})
