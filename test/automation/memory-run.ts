import { memoryService } from '../../src/automation/testing/memory-service.ts'
import { MemoryRunBackend } from '../../src/automation/testing/memory-run-backend.ts'
import type { AutomationRunData } from '../../src/automation/index.ts'
import type { ObjectService } from '../../src/index.ts'
import type { RunUnderTest } from './run-backend-suite.ts'

export const ARTIFACT_BYTES_MAX = 200_000

export interface MemoryRun extends RunUnderTest {
  readonly backend: MemoryRunBackend
  readonly runData: AutomationRunData
  readonly service: ObjectService
}

/** A run in memory, over a service in memory, with a model of one root and one child unless another is given. */
export async function memoryRun(model: object = { name: 'root', '@child': { name: 'child' } }): Promise<MemoryRun> {
  const { service, client } = memoryService()
  const { root: rootObjectId } = await client.project('demo').send(model)
  const trigger = { modelId: 'model', versionId: 'version', rootObjectId, message: '' }
  const backend = new MemoryRunBackend({ client, projectId: 'demo', trigger, artifactBytesMax: ARTIFACT_BYTES_MAX })
  const found = <T extends { readonly id: string }>(items: readonly T[], id: string): T =>
    items.find((item) => item.id === id) as T
  return {
    backend,
    service,
    projectId: 'demo',
    modelId: 'model',
    rootObjectId,
    artifactBytesMax: ARTIFACT_BYTES_MAX,
    runData: {
      projectId: 'demo',
      speckleServerUrl: 'http://in.process',
      automationId: 'automation',
      automationRunId: 'run',
      functionRunId: 'run',
      triggers: [{ triggerType: 'versionCreation', payload: { modelId: 'model', versionId: 'version' } }],
    },
    state: async () => {
      const { status, message, progress, annotations, logs } = backend.reported
      return { status, message, fraction: progress?.fraction, annotations: annotations, logs }
    },
    version: async (id) => found(backend.reported.versions, id),
    artifact: async (id) => found(backend.reported.artifacts, id),
    versionCount: async () => backend.reported.versions.length,
    artifactCount: async () => backend.reported.artifacts.length,
    cancel: async () => void backend.end('canceled'),
  }
}
