import type { JsonValue } from '../../automation/author/run-data.ts'
import { SecretRedactor } from '../../automation/runtime/run/secret-redactor.ts'
import type { RunChanges } from './run-changes.ts'
import type { Runs } from './runs.ts'
import type { SecretBox } from './secrets.ts'

interface Parts {
  readonly changes: RunChanges
  readonly runs: Runs
  readonly secrets: SecretBox
}

/**
 * Keeps the secrets of a run out of its reports over the network. The SDK does so itself, but a function need not use
 * it.
 */
export class RunSecrets {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The same JSON value without the run's token and the secrets among its inputs, in any spelling. */
  async redacted<T>(
    said: T,
    {
      projectId,
      runId,
      token,
    }: { readonly projectId: string; readonly runId: string; readonly token: string | undefined },
  ): Promise<T> {
    return new SecretRedactor([...(await this.#textsOf(projectId, runId)), token ?? '']).json(said as JsonValue) as T
  }

  async #textsOf(projectId: string, runId: string): Promise<readonly string[]> {
    const { changes, runs, secrets } = this.#parts
    const {
      scope,
      stored: {
        value: { automationId },
      },
    } = await changes.found(projectId, runId)
    const { sealed } = await runs.inputs(scope, runId)
    return Object.values(secrets.open({ inputs: {}, sealed }, { projectId, automationId })).filter(
      (text) => typeof text === 'string',
    )
  }
}
