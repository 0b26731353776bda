import { decodeRecord } from '../records/codec.ts'
import { boundsOf, partsOf, projectKey, type ProjectTable } from '../records/keys.ts'
import { type AutomationStore, expectSame, type ProjectScope } from '../records/store.ts'
import { ErrorCollector } from '../domain/error-collector.ts'
import type { RunRecord } from '../domain/run-record.ts'
import type { SealedInputs, SecretBox, SecretKey, SecretKeySource } from '../domain/secrets.ts'
import { scopesOf } from './project-scopes.ts'

export type SecretKeys = readonly SecretKey[] | SecretKeySource

/**
 * Takes up keys that were added while the service runs, seals everything anew with the current one, and then lets the
 * older ones go.
 */
export class SecretResealer {
  readonly #secrets: SecretBox
  readonly #keys: SecretKeys
  /** The ids of the keys with which a whole pass found nothing left to seal anew. */
  #cleanKeyIds = ''

  constructor(secrets: SecretBox, keys: SecretKeys) {
    this.#secrets = secrets
    this.#keys = keys
    if (!('read' in keys)) secrets.take(keys)
  }

  /** Throws what reading the keys throws, and `TypeError` for keys that cannot be; the former keys stay then. */
  async takeKeys(): Promise<void> {
    if ('read' in this.#keys) this.#secrets.take(await this.#keys.read())
  }

  /** May be cut off at any point. */
  async run(store: AutomationStore, signal: AbortSignal): Promise<void> {
    await this.takeKeys()
    const [, ...older] = this.#secrets.keyIds
    if (older.length === 0) return
    const keyIds = this.#secrets.keyIds.join()
    if (keyIds === this.#cleanKeyIds) {
      // A pass before this one found nothing: changes that were under way when the keys were read have been written
      // since.
      if ('read' in this.#keys) await this.#keys.release?.(older)
      return
    }
    if ((await this.#pass(store, signal)) === 0) this.#cleanKeyIds = keyIds
  }

  /** Resolves to how many records were sealed anew, or could not be because they changed meanwhile. */
  async #pass(store: AutomationStore, signal: AbortSignal): Promise<number> {
    const errors = new ErrorCollector()
    let count = 0
    for await (const scope of scopesOf(store, signal)) {
      await errors.attempt(async () => {
        count += await this.#table(store, { scope, table: 'automation', signal }, (id) => id)
      })
      await errors.attempt(async () => {
        count += await this.#table(store, { scope, table: 'inputs', signal }, async (runId) => {
          return (await store.get<RunRecord>(scope, 'run', runId))?.value.automationId
        })
      })
    }
    errors.check()
    return count
  }

  async #table(
    store: AutomationStore,
    {
      scope,
      table,
      signal,
    }: { readonly scope: ProjectScope; readonly table: ProjectTable; readonly signal: AbortSignal },
    automationOf: (id: string) => string | undefined | Promise<string | undefined>,
  ): Promise<number> {
    let count = 0
    for await (const entries of store.records.range(boundsOf(projectKey(scope, table)), { signal })) {
      for (const { key, value: bytes } of entries) {
        signal.throwIfAborted()
        const value = decodeRecord<SealedInputs>(key, bytes)
        if (Object.keys(value.sealed).length === 0) continue
        const automationId = await automationOf(partsOf(key)[3])
        if (automationId === undefined) continue
        const anew = this.#secrets.resealed(value, { projectId: scope.projectId, automationId })
        if (anew === undefined) continue
        await store.commit(scope, {
          put: [store.entry(key, { ...value, sealed: anew.sealed })],
          expect: [expectSame({ key, bytes, value })],
        })
        count++
      }
    }
    return count
  }
}
