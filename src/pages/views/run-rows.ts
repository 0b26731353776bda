import type { AutomationProject } from '../../automation-server/automation-project.ts'
import type { Run, Version } from '../../automation-server/schemas/types.ts'
import { StowageError } from '../../errors.ts'

/** A run with the names of its automation, model and version, if they still exist. */
export interface RunRow {
  readonly run: Run
  readonly automationName: string | undefined
  readonly version: Version | undefined
}

/** Looks up the names for runs; each automation and version once. */
export async function runRows(project: AutomationProject, runs: readonly Run[]): Promise<readonly RunRow[]> {
  const names = new Map<string, Promise<string | undefined>>()
  const versions = new Map<string, Promise<Version | undefined>>()
  for (const { automationId, modelId, versionId } of runs) {
    if (!names.has(automationId))
      names.set(
        automationId,
        undefinedIfNotFound(project.automations.get(automationId)).then((found) => found?.name),
      )
    if (!versions.has(versionId)) versions.set(versionId, undefinedIfNotFound(project.versions.get(modelId, versionId)))
  }
  return Promise.all(
    runs.map(async (run) => ({
      run,
      automationName: await names.get(run.automationId),
      version: await versions.get(run.versionId),
    })),
  )
}

/** `undefined` if it no longer exists. */
export async function undefinedIfNotFound<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof StowageError && error.code === 'not_found') return undefined
    throw error
  }
}
