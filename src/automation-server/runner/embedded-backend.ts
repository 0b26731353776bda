import type {
  NewArtifact,
  NewVersion,
  RunBackend,
  RunLease,
  SignalOptions,
  TriggeringVersion,
} from '../../automation/runtime/run-backend.ts'
import type { RunReport } from '../../automation/author/run-data.ts'
import { outsideRun } from '../../automation/runtime/run/failures.ts'
import { type Client, createClient } from '../../client/client.ts'
import { StowageError } from '../../errors.ts'
import type { Domain } from '../domain/domain.ts'
import { allowsProject } from '../domain/allowed-projects.ts'
import { RUN_REPORT } from '../schemas/shapes/reports.ts'
import type { RunRecord } from '../domain/run-record.ts'

export interface EmbeddedRun {
  readonly projectId: string
  readonly run: Pick<RunRecord, 'id' | 'attempt' | 'modelId' | 'versionId' | 'reach'>
  readonly token: string
  /** The base URL of the service's paths, for the client. Nothing is sent there. */
  readonly url: string
  readonly fetch: (request: Request) => Promise<Response>
}

/**
 * The place that a run in this process reports to: the service's own stores. Its client asks the service in process,
 * with the token of the run.
 */
export function embeddedRunBackend(domain: Domain, { projectId, run, token, url, fetch }: EmbeddedRun): RunBackend {
  const client: Client = createClient({
    url,
    token,
    fetch: (address, init) => outsideRun(() => fetch(new Request(address, init))),
  })
  return {
    client,
    triggeringVersion: async (): Promise<TriggeringVersion> => {
      const { id, modelId, rootObjectId, message } = await domain.versions.get(projectId, run.modelId, run.versionId)
      return { versionId: id, modelId, rootObjectId, message }
    },
    report: (report: RunReport) =>
      outsideRun(async () => domain.reports.take(projectId, run.id, RUN_REPORT.read(report, ''), run.attempt)),
    createVersion: async (version: NewVersion, { signal = new AbortController().signal }: SignalOptions = {}) => {
      if (version.projectId !== projectId && !allowsProject(run.reach, version.projectId))
        throw new StowageError('forbidden', 'the run may not write in that project; its automation can name it')
      const { modelId, rootObjectId, message, idempotencyKey } = version
      return (
        await outsideRun(() =>
          domain.createVersion(
            version.projectId,
            modelId,
            { rootObjectId, message },
            { run: { projectId, runId: run.id, attempt: run.attempt, idempotencyKey }, signal },
          ),
        )
      ).id
    },
    storeArtifact: async ({ name, content, sizeBytes, idempotencyKey }: NewArtifact, { signal }: SignalOptions = {}) =>
      (
        await domain.artifacts.store(
          projectId,
          run.id,
          { attempt: run.attempt, name, content, idempotencyKey, sizeHintBytes: sizeBytes },
          signal,
        )
      ).id,
    renewLease: (): Promise<RunLease> => outsideRun(() => domain.reports.lease(projectId, run.id, run.attempt)),
  }
}
