import type { ObjectRecord, ObjectStore, StoredObject } from '../../src/index.ts'

/** A host's own object store at its smallest: a map for each project. */
export class PlainObjectStore implements ObjectStore {
  readonly #projects = new Map<string, Map<string, StoredObject>>()

  async put(projectId: string, batches: AsyncIterable<readonly ObjectRecord[]>): Promise<{ inserted: number }> {
    const incoming: StoredObject[] = []
    for await (const records of batches)
      for (const { id, json } of records) incoming.push({ id, json: Uint8Array.from(json) })
    const project = this.#project(projectId)
    const before = project.size
    for (const record of incoming) if (!project.has(record.id)) project.set(record.id, record)
    this.#projects.set(projectId, project)
    return { inserted: project.size - before }
  }

  async has(projectId: string, ids: readonly string[]): Promise<readonly boolean[]> {
    const project = this.#project(projectId)
    return ids.map((id) => project.has(id))
  }

  async *get(
    projectId: string,
    ids: readonly string[],
    options: { readonly signal: AbortSignal },
  ): AsyncGenerator<readonly StoredObject[]> {
    options.signal.throwIfAborted()
    const project = this.#project(projectId)
    yield ids.map((id) => project.get(id)).filter((record) => record !== undefined)
  }

  #project(projectId: string): Map<string, StoredObject> {
    return this.#projects.get(projectId) ?? new Map<string, StoredObject>()
  }
}
