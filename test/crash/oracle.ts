import { hash } from 'node:crypto'
import type { Random } from '../../bench/model/random.ts'
import type { Client, Outcome, Texts } from './client.ts'
import { PROJECTS, type Upload } from './uploads.ts'

/** `open`: no answer came, so it may be there or not, but not in part; which of the two is settled by looking once, and for ever. */
type State = 'acknowledged' | 'open' | 'settled' | 'absent'

interface Entry {
  readonly projectId: string
  readonly rootId: string
  readonly ownIds: readonly string[]
  /** Digests of the texts by id. */
  readonly digests: ReadonlyMap<string, string>
  state: State
  /** Since the last crash. */
  isNew: boolean
}

export interface VerifyOptions {
  readonly random: Random
  /** Compare the bytes of everything, not only of what is new and of some of the rest. */
  readonly everything: boolean
}

/** Older uploads whose bytes are compared after each crash. */
const OLDER_COMPARED = 3
const FINDINGS_MAX = 20

/**
 * What must be in a storage: lives outside of the server that crashes, and believes in an upload only after its 200.
 * Fresh folder, fresh oracle.
 */
export class Oracle {
  readonly #entries: Entry[] = []
  /** Where several uploads have a text for one id, the one that was seen first; it must stay. */
  readonly #pinned = new Map<string, string>()
  #findings: string[] = []

  get acknowledgedUploads(): number {
    return this.#entries.filter(({ state }) => state === 'acknowledged').length
  }

  get acknowledgedObjects(): number {
    return this.#entries.reduce((sum, { state, digests }) => sum + (state === 'acknowledged' ? digests.size : 0), 0)
  }

  note(upload: Upload, outcome: Outcome): void {
    const { projectId, rootId, ownIds, texts, fate } = upload
    const isExpected = outcome === 'unknown' || (outcome === 'acknowledged') === (fate === 'whole')
    if (!isExpected) throw new Error(`an upload whose fate is to be ${fate} was ${outcome}`)
    const state =
      outcome === 'acknowledged' ? 'acknowledged' : fate === 'whole' && outcome === 'unknown' ? 'open' : 'absent'
    const digests = new Map([...texts].map(([id, text]) => [id, digest(text)]))
    this.#entries.push({ projectId, rootId, ownIds, digests, state, isNew: true })
  }

  /**
   * Compares a server that came up again with what it must hold; the answer says what is wrong, and is empty if nothing
   * is.
   */
  async verify(client: Client, options: VerifyOptions): Promise<readonly string[]> {
    this.#findings = []
    for (const projectId of PROJECTS) {
      const entries = this.#entries.filter((entry) => entry.projectId === projectId)
      for (const entry of entries) if (entry.isNew && entry.state === 'open') await this.#settle(client, entry)
      await this.#verifyHeld(client, projectId, entries)
      await this.#verifyTexts(client, chosen(entries, options), options.random)
    }
    for (const entry of this.#entries) entry.isNew = false
    return this.#findings.slice(0, FINDINGS_MAX)
  }

  async #settle(client: Client, entry: Entry): Promise<void> {
    const held = await client.held(entry.projectId, entry.ownIds)
    entry.state = held.size > 0 ? 'settled' : 'absent'
    if (held.size > 0 && held.size < entry.ownIds.length)
      this.#find(
        `torn: ${held.size} of ${entry.ownIds.length} objects of ${entry.rootId}, which was never acknowledged`,
      )
  }

  /** Held is what is in an upload that is there, and nothing else. */
  async #verifyHeld(client: Client, projectId: string, entries: readonly Entry[]): Promise<void> {
    const expected = new Set(entries.filter(isThere).flatMap(({ digests }) => [...digests.keys()]))
    const all = [...new Set(entries.flatMap(({ digests }) => [...digests.keys()]))]
    const held = await client.held(projectId, all)
    for (const id of all) {
      if (expected.has(id) && !held.has(id)) this.#find(`lost: ${id}`)
      if (!expected.has(id) && held.has(id)) this.#find(`a ghost: ${id}, whose uploads all failed`)
    }
  }

  async #verifyTexts(client: Client, entries: readonly Entry[], random: Random): Promise<void> {
    for (const entry of entries) {
      const { projectId, rootId, digests } = entry
      const ids = [...digests.keys()]
      try {
        this.#compare(entry, await client.objects(projectId, ids, random))
        this.#compare(entry, await client.graph(projectId, rootId, random))
      } catch (error) {
        this.#find(`unreadable: ${rootId}: ${String(error)}`)
      }
    }
  }

  #compare({ projectId, digests }: Entry, texts: Texts): void {
    for (const id of digests.keys()) if (!texts.has(id)) this.#find(`lost in a download: ${id}`)
    for (const [id, text] of texts) {
      const found = digest(text)
      const name = `${projectId} ${id}`
      if (digests.get(id) !== found && !this.#isOfAnother(projectId, id, found))
        this.#find(`wrong: ${id} has a text that nobody wrote`)
      else if ((this.#pinned.get(name) ?? found) !== found) this.#find(`wrong: ${id} has another text than before`)
      if (id.startsWith('rival')) this.#pinned.set(name, found)
    }
  }

  #isOfAnother(projectId: string, id: string, found: string): boolean {
    return this.#entries.some(
      (entry) => entry.projectId === projectId && isThere(entry) && entry.digests.get(id) === found,
    )
  }

  #find(finding: string): void {
    this.#findings.push(finding)
  }
}

function isThere({ state }: Entry): boolean {
  return state === 'acknowledged' || state === 'settled'
}

function chosen(entries: readonly Entry[], { everything, random }: VerifyOptions): readonly Entry[] {
  const there = entries.filter(isThere)
  if (everything) return there
  const older = there.filter(({ isNew }) => !isNew)
  return [
    ...there.filter(({ isNew }) => isNew),
    ...Array.from({ length: Math.min(OLDER_COMPARED, older.length) }, () => random.pick(older)),
  ]
}

function digest(text: string): string {
  return hash('sha256', text, 'base64').slice(0, 24)
}
