import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { suite, test, type TestContext } from 'node:test'
import type { Annotation, RunStatus } from '../../src/automation/index.ts'
import type { LogLine, NewArtifact, RunBackend } from '../../src/automation/runtime/index.ts'

/** A run that was just started, and how it looks from the other side. */
export interface RunUnderTest {
  readonly backend: RunBackend
  readonly projectId: string
  readonly modelId: string
  /** Of the version that triggered the run, whose root has one child. */
  readonly rootObjectId: string
  /** The limit in bytes. */
  readonly artifactBytesMax: number
  readonly state: () => Promise<RunState>
  readonly version: (
    id: string,
  ) => Promise<{ readonly modelId: string; readonly rootObjectId: string; readonly message: string }>
  readonly artifact: (id: string) => Promise<{ readonly name: string; readonly bytes: Uint8Array }>
  readonly versionCount: () => Promise<number>
  readonly artifactCount: () => Promise<number>
  /** Cancels it from outside. */
  readonly cancel: () => Promise<void>
}

export interface RunState {
  readonly status: RunStatus
  readonly message: string
  readonly fraction: number | undefined
  readonly annotations: readonly Annotation[]
  readonly logs: readonly LogLine[]
}

const RESULT: Annotation = {
  category: 'fire rating',
  level: 'ERROR',
  objectAppIds: { a: 'app-a', b: null },
  message: 'missing',
  metadata: { rule: 7 },
}
const LINE: LogLine = { atMs: 1_700_000_000_000, level: 'info', message: 'a line' }

/**
 * What every `RunBackend` must do. `open` gives a run of its own to each test, in the status `pending` or
 * `initializing`.
 */
export function runBackendSuite(name: string, open: (t: TestContext) => Promise<RunUnderTest>): void {
  suite(`run backend: ${name}`, () => {
    reports(open)
    endings(open)
    versions(open)
    artifacts(open)
  })
}

function reports(open: (t: TestContext) => Promise<RunUnderTest>): void {
  test('getRun returns the version that triggered the run, and its client reads the model', async (t) => {
    const { backend, projectId, modelId, rootObjectId } = await open(t)
    const trigger = await backend.triggeringVersion()
    assert.deepEqual(
      [trigger.modelId, trigger.rootObjectId, typeof trigger.versionId, typeof trigger.message],
      [modelId, rootObjectId, 'string', 'string'],
    )
    const root = await backend.client.project(projectId).receive(trigger.rootObjectId)
    assert.equal(root.id, rootObjectId)
  })

  test('items of reports are added in order', async (t) => {
    const { backend, state } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    await backend.report({
      sequence: 2,
      annotations: [RESULT],
      logs: [LINE],
      progress: { fraction: 0.25, message: 'a quarter' },
    })
    await backend.report({ sequence: 3, annotations: [{ ...RESULT, level: 'INFO' }], progress: { fraction: 0.5 } })
    const { status, fraction, annotations, logs } = await state()
    assert.deepEqual([status, fraction], ['running', 0.5])
    assert.deepEqual(annotations, [RESULT, { ...RESULT, level: 'INFO' }])
    assert.deepEqual(logs, [LINE])
  })

  test('a repeated report is stored once', async (t) => {
    const { backend, state } = await open(t)
    await backend.report({ sequence: 1, status: 'running', logs: [LINE] })
    await backend.report({ sequence: 1, status: 'running', logs: [LINE] })
    await Promise.all(
      [2, 2, 2].map((sequence) => backend.report({ sequence, annotations: [RESULT], logs: [LINE] }).catch(ifRetryable)),
    )
    await backend.report({ sequence: 2, annotations: [RESULT], logs: [LINE] })
    const { annotations, logs } = await state()
    assert.deepEqual([annotations.length, logs.length], [1, 2])
  })
}

function endings(open: (t: TestContext) => Promise<RunUnderTest>): void {
  test('the final status keeps its message, a repeat is accepted, and another final status is a conflict', async (t) => {
    const { backend, state } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    const final = { sequence: 2, status: 'failed', message: 'two walls', annotations: [RESULT] } as const
    await backend.report(final)
    await backend.report(final)
    await assert.rejects(backend.report({ sequence: 3, status: 'succeeded', message: 'after all' }), {
      code: 'conflict',
      isRetryable: false,
    })
    const { status, message, annotations } = await state()
    assert.deepEqual([status, message, annotations.length], ['failed', 'two walls', 1])
  })

  test('of two different concurrent final reports, exactly one succeeds', async (t) => {
    const { backend, state } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    const messages = await Promise.all(
      (['succeeded', 'failed'] as const).map(async (status, at) => {
        const outcome = await backend.report({ sequence: 2 + at, status, message: status }).then(
          () => status,
          () => undefined,
        )
        return outcome
      }),
    )
    const { status, message } = await state()
    assert.equal(message, status)
    assert.ok(messages.includes(status as 'succeeded'), `${status} holds, and was refused`)
  })

  test('a status cannot go back', async (t) => {
    const { backend, state } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    await assert.rejects(backend.report({ sequence: 2, status: 'initializing' }), { code: 'conflict' })
    assert.equal((await state()).status, 'running')
  })

  test('a canceled run refuses a success, and its lease reports the cancellation', async (t) => {
    const { backend, state, cancel } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    if (backend.renewLease !== undefined)
      assert.deepEqual(await backend.renewLease(), { status: 'running', canceled: false })
    await cancel()
    await assert.rejects(
      backend.report({ sequence: 2, status: 'succeeded', message: 'too late' }),
      (error: { readonly isRetryable: boolean }) => !error.isRetryable,
    )
    const lease = await backend.renewLease?.().catch(() => undefined)
    assert.ok(lease === undefined || lease.canceled)
    assert.equal((await state()).status, 'canceled')
  })
}

function versions(open: (t: TestContext) => Promise<RunUnderTest>): void {
  test('createVersion makes a version of stored objects, once for each key', async (t) => {
    const { backend, projectId, modelId, version, versionCount } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    const before = await versionCount()
    const { root } = await backend.client.project(projectId).send({ name: 'renamed', '@child': { name: 'child' } })
    const wanted = { projectId, modelId, rootObjectId: root, message: 'levels renamed', idempotencyKey: randomUUID() }
    const id = await backend.createVersion(wanted)
    assert.equal(await backend.createVersion(wanted), id)
    const { modelId: model, rootObjectId, message } = await version(id)
    assert.deepEqual([model, rootObjectId, message], [modelId, root, 'levels renamed'])
    assert.equal((await versionCount()) - before, 1)
  })

  test('a version with a missing root or child, or of another project, is refused', async (t) => {
    const { backend, projectId, modelId } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    const wanted = {
      projectId,
      modelId,
      rootObjectId: 'f'.repeat(32),
      message: 'nothing',
      idempotencyKey: randomUUID(),
    }
    await assert.rejects(backend.createVersion(wanted), { code: 'objects_missing' })
    const hollow = { id: 'e'.repeat(32), child: { speckle_type: 'reference', referencedId: 'd'.repeat(32) } }
    await backend.client.project(projectId).upload([hollow])
    await assert.rejects(backend.createVersion({ ...wanted, rootObjectId: hollow.id, idempotencyKey: randomUUID() }), {
      code: 'objects_missing',
    })
    await assert.rejects(backend.createVersion({ ...wanted, projectId: 'another' }), { code: 'forbidden' })
  })
}

function artifacts(open: (t: TestContext) => Promise<RunUnderTest>): void {
  test('a file is stored under its display name, once for each key', async (t) => {
    const { backend, artifact, artifactCount } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    const file = fileOf('quantités & <levels> 100%.csv', [Buffer.from('level,area\n'), Buffer.from('1,2\n')])
    const id = await backend.storeArtifact(file)
    assert.equal(await backend.storeArtifact(file), id)
    const { name, bytes } = await artifact(id)
    assert.deepEqual([name, Buffer.from(bytes).toString()], ['quantités & <levels> 100%.csv', 'level,area\n1,2\n'])
    assert.equal(await artifactCount(), 1)
    const empty = await backend.storeArtifact(fileOf('empty', []))
    assert.equal((await artifact(empty)).bytes.length, 0)
  })

  test('a file that is too large is refused, regardless of its declared size', async (t) => {
    const { backend, artifactBytesMax, artifactCount } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    const chunks = Array.from({ length: Math.ceil(artifactBytesMax / 65_536) + 1 }, () => new Uint8Array(65_536))
    await assert.rejects(backend.storeArtifact(fileOf('large', chunks)), {
      code: 'artifact_too_large',
      isRetryable: false,
    })
    await assert.rejects(backend.storeArtifact({ ...fileOf('large', chunks), sizeBytes: 1 }), {
      code: 'artifact_too_large',
      isRetryable: false,
    })
    assert.equal(await artifactCount(), 0)
  })

  test('a file whose content fails leaves nothing', async (t) => {
    const { backend, artifactCount } = await open(t)
    await backend.report({ sequence: 1, status: 'running' })
    async function* content(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1_000)
      throw new Error('the disk is gone')
    }
    await assert.rejects(
      backend.storeArtifact({
        name: 'torn',
        sizeBytes: 2_000,
        idempotencyKey: randomUUID(),
        content: { [Symbol.asyncIterator]: content },
      }),
    )
    assert.equal(await artifactCount(), 0)
  })
}

function fileOf(name: string, chunks: readonly Uint8Array[]): NewArtifact {
  async function* content(): AsyncGenerator<Uint8Array> {
    yield* chunks
  }
  return {
    name,
    sizeBytes: chunks.reduce((sum, { length }) => sum + length, 0),
    idempotencyKey: randomUUID(),
    content: { [Symbol.asyncIterator]: content },
  }
}

/** Reports of the same number at once may get in each other's way, as long as they say so. */
function ifRetryable(error: unknown): void {
  if ((error as { readonly isRetryable?: unknown }).isRetryable !== true) throw error
}
