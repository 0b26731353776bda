import assert from 'node:assert/strict'
import { ClientError, type Project } from '../../src/client/index.ts'
import { linesOf } from '../archive/support.ts'
import { buildModel, type Model } from '../support/model.ts'

const OBJECTS = 120
const CHANGED = 30
/** More pins make every check longer, and find nothing more. */
const PINS_MAX = 4

/**
 * A project whose pins come and go while its server is killed, and what is known of it: everything that was
 * acknowledged, and of the last request perhaps its effect.
 */
export class PinnedModels {
  readonly #seed: number
  readonly #models = new Map<string, Model>()
  /** Roots of the pins that were acknowledged, by the id of the pin. */
  readonly #acknowledged = new Map<string, string>()
  /** A removal may have happened though it was not acknowledged. */
  readonly #perhapsRemoved = new Set<string>()
  #revision = 0
  /** Pins whose addition was acknowledged, removed ones included. */
  pinsAdded = 0

  constructor(seed: number) {
    this.#seed = seed
  }

  /** Uploads another state of the model and pins it; removes the pin of an older one. Throws what the client throws. */
  async step(project: Project): Promise<void> {
    const model = buildModel({ objects: OBJECTS, seed: this.#seed, revision: this.#revision++, changed: CHANGED })
    this.#models.set(model.rootId, model)
    const objects = model.objects.map(({ id, json }) => ({ id, json }))
    await project.upload(objects, { batchBytes: 20_000, concurrency: 2 })
    const pin = await project.pins.add({ rootObjectId: model.rootId })
    this.#acknowledged.set(pin.id, model.rootId)
    this.pinsAdded++
    // Nothing refers to it.
    await project.upload([{ id: `loose-${this.#seed}-${this.#revision}` }])
    const [oldest] = this.#acknowledged.keys()
    if (this.#acknowledged.size <= PINS_MAX) return
    this.#perhapsRemoved.add(oldest)
    await project.pins.remove(oldest)
    this.#acknowledged.delete(oldest)
  }

  /** Every pin that was acknowledged is there, and below each pin everything, byte for byte. */
  async check(project: Project): Promise<void> {
    const held = await this.checkWhole(project)
    for (const id of this.#acknowledged.keys())
      if (!held.has(id)) assert.ok(this.#perhapsRemoved.has(id), `the pin ${id} was acknowledged and is not there`)
    this.#acknowledged.clear()
    for (const { id, rootObjectId } of await project.pins.list()) this.#acknowledged.set(id, rootObjectId)
    this.#perhapsRemoved.clear()
  }

  /** Pins that were acknowledged, and whose removal was not asked for. */
  pinIds(): ReadonlySet<string> {
    return new Set([...this.#acknowledged.keys()].filter((id) => !this.#perhapsRemoved.has(id)))
  }

  /** Below each pin there is everything, byte for byte. Resolves to the ids of the pins. */
  async checkWhole(project: Project): Promise<ReadonlySet<string>> {
    const pins = await project.pins.list()
    for (const { id, rootObjectId } of pins) {
      const model = this.#models.get(rootObjectId)
      assert.ok(model !== undefined, `the pin ${id} is of another root`)
      assert.deepEqual(await linesOf(project, rootObjectId), expectedLines(model), `below the pin ${id}`)
    }
    return new Set(pins.map(({ id }) => id))
  }

  /** Objects that a pin reaches, after `check`. */
  reached(): { readonly objects: number; readonly jsonBytes: number } {
    const byId = new Map([...this.#acknowledged.values()].flatMap((root) => [...(this.#models.get(root)?.byId ?? [])]))
    return { objects: byId.size, jsonBytes: [...byId.values()].reduce((sum, json) => sum + Buffer.byteLength(json), 0) }
  }
}

function expectedLines({ objects }: Model): readonly string[] {
  return objects.map(({ id, json }) => `${id}\t${json}`).sort()
}

/** Whether the server was gone, which a test that kills it expects. */
export function isGone(error: unknown): boolean {
  return error instanceof ClientError && !error.isAnswered
}
