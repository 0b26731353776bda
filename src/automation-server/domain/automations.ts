import { InputsError } from '../../automation/author/inputs/errors.ts'
import { StowageError } from '../../errors.ts'
import { projectKey } from '../records/keys.ts'
import { expectAbsent, expectSame, type ProjectScope, type Stored } from '../records/store.ts'
import type { Automation, AutomationChange, NewAutomation, Page, PageRequest } from '../schemas/types.ts'
import { checkName, checkPage, checkResourceId, notFoundError, PAGE_ITEMS_MAX } from '../schemas/checks.ts'
import type { Models } from './models.ts'
import { checkProjects } from './allowed-projects.ts'
import type { DomainParts } from './parts.ts'
import { REDACTED, type SealedInputs } from './secrets.ts'

/** An automation as it is kept. */
export interface AutomationRecord extends Automation, SealedInputs {}

/** Bytes of JSON of inputs with their sealed secrets: they share a record with the rest of an automation. */
const KEPT_INPUTS_BYTES_MAX = 60_000

type Parts = Pick<DomainParts, 'store' | 'functions' | 'secrets' | 'limits'> & { readonly models: Models }

/** A function that is to run on the versions of a model, with inputs. */
export class Automations {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Throws `not_found` for a function or model that there is not, `InputsError` for inputs that the function does not
   * take.
   */
  async create(projectId: string, wanted: NewAutomation): Promise<Automation> {
    const { store, functions, secrets, models, limits } = this.#parts
    checkName(wanted.name, "the automation's name")
    const { parse, secretNames } = functions.get(wanted.functionId)
    const values = parse(wanted.inputs)
    await models.getLive(projectId, wanted.modelId)
    const record = await store.retried(async () => {
      const scope = await store.writingScope(projectId)
      const model = await models.live(scope, wanted.modelId)
      if ((await this.#count(scope)) >= limits.automationsMax)
        throw new StowageError('conflict', `this project has ${limits.automationsMax} automations, the limit`)
      const { name, functionId, modelId, trigger, enabled = true } = wanted
      const projects = checkProjects(wanted.projects ?? [])
      const [id, now] = [store.newId(), store.nowText()]
      const kept = fitting(secrets.seal(values, secretNames, { projectId, automationId: id }))
      const record: AutomationRecord = {
        id,
        name,
        functionId,
        modelId,
        trigger,
        enabled,
        projects,
        ...kept,
        createdAt: now,
        updatedAt: now,
      }
      const key = projectKey(scope, 'automation', id)
      return (await store.commit(scope, {
        put: [store.entry(key, record)],
        expect: [expectAbsent(key), expectSame(model)],
      }))
        ? record
        : undefined
    })
    return automationView(record)
  }

  /** Throws `not_found`. */
  async get(projectId: string, automationId: string): Promise<Automation> {
    return automationView((await this.found(projectId, automationId)).stored.value)
  }

  async found(
    projectId: string,
    automationId: string,
  ): Promise<{ readonly scope: ProjectScope; readonly stored: Stored<AutomationRecord> }> {
    checkResourceId(automationId, 'automation')
    const scope = await this.#parts.store.scope(projectId)
    const stored =
      scope === undefined ? undefined : await this.#parts.store.get<AutomationRecord>(scope, 'automation', automationId)
    if (scope === undefined || stored === undefined) throw notFoundError('automation', automationId)
    return { scope, stored }
  }

  /** The oldest first. */
  async list(projectId: string, request: PageRequest = {}): Promise<Page<Automation>> {
    checkPage(request)
    const { store } = this.#parts
    const scope = await store.scope(projectId)
    if (scope === undefined) return { items: [], cursor: null }
    const { items, cursor } = await store.page<AutomationRecord>(projectKey(scope, 'automation'), request)
    return { items: items.map(({ value }) => automationView(value)), cursor }
  }

  /** Runs that exist keep the inputs that they were made with. Throws as `create`. */
  async change(projectId: string, automationId: string, change: AutomationChange): Promise<Automation> {
    const { store, functions, secrets } = this.#parts
    if (change.name !== undefined) checkName(change.name, "the automation's name")
    const record = await store.retried(async () => {
      const { scope, stored } = await this.found(projectId, automationId)
      const { name = stored.value.name, trigger = stored.value.trigger, enabled = stored.value.enabled } = change
      const kept =
        change.inputs === undefined
          ? undefined
          : this.#newInputs(projectId, stored.value, change.inputs, { functions, secrets })
      const projects = checkProjects(change.projects ?? stored.value.projects)
      const changed = { name, trigger, enabled, projects, ...kept, updatedAt: store.nowText() }
      const record: AutomationRecord = { ...stored.value, ...changed }
      return (await store.commit(scope, { put: [store.entry(stored.key, record)], expect: [expectSame(stored)] }))
        ? record
        : undefined
    })
    return automationView(record)
  }

  /** Its runs stay. Throws `not_found`. */
  async remove(projectId: string, automationId: string): Promise<void> {
    const { store } = this.#parts
    await store.retried(async () => {
      const { scope, stored } = await this.found(projectId, automationId)
      return (await store.commit(scope, { remove: [stored.key], expect: [expectSame(stored)] })) ? true : undefined
    })
  }

  /** The projects that it names; none if it is gone. */
  async projectsOf(scope: ProjectScope, automationId: string): Promise<readonly string[]> {
    return (await this.#parts.store.get<AutomationRecord>(scope, 'automation', automationId))?.value.projects ?? []
  }

  /** Those that run by themselves on new versions of a model. */
  async triggeredBy(scope: ProjectScope, modelId: string): Promise<readonly AutomationRecord[]> {
    const found: AutomationRecord[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page: Page<{ readonly value: AutomationRecord }> = await this.#parts.store.page<AutomationRecord>(
        projectKey(scope, 'automation'),
        { limit: PAGE_ITEMS_MAX, cursor: cursor ?? undefined },
      )
      for (const { value } of page.items)
        if (value.enabled && value.trigger === 'version' && value.modelId === modelId) found.push(value)
      cursor = page.cursor
    }
    return found
  }

  #newInputs(
    projectId: string,
    record: AutomationRecord,
    inputs: NewAutomation['inputs'],
    { functions, secrets }: Pick<Parts, 'functions' | 'secrets'>,
  ): SealedInputs {
    const owner = { projectId, automationId: record.id }
    const { parse, secretNames } = functions.get(record.functionId)
    const stored = Object.keys(record.sealed).length === 0 ? record.inputs : secrets.open(record, owner)
    // Everybody can see an input that the current function takes as a text, so a former secret is never put there.
    const stays = (name: string): boolean => secretNames.includes(name) && Object.hasOwn(stored, name)
    const meant = Object.fromEntries(
      Object.entries(inputs).map(([name, value]) => [name, value === REDACTED && stays(name) ? stored[name] : value]),
    )
    return fitting(secrets.seal(parse(meant), secretNames, owner))
  }

  async #count(scope: ProjectScope): Promise<number> {
    let count = 0
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page: Page<unknown> = await this.#parts.store.page(projectKey(scope, 'automation'), {
        limit: PAGE_ITEMS_MAX,
        cursor: cursor ?? undefined,
      })
      count += page.items.length
      cursor = page.cursor
    }
    return count
  }
}

function fitting(kept: SealedInputs): SealedInputs {
  const bytes = Buffer.byteLength(JSON.stringify(kept))
  if (bytes <= KEPT_INPUTS_BYTES_MAX) return kept
  throw new InputsError('invalid_inputs', [
    {
      path: '',
      message: `must have ${KEPT_INPUTS_BYTES_MAX} bytes at most together, with secrets sealed; these are ${bytes}`,
    },
  ])
}

export function automationView({
  id,
  name,
  functionId,
  modelId,
  inputs,
  trigger,
  enabled,
  projects,
  createdAt,
  updatedAt,
}: AutomationRecord): Automation {
  return { id, name, functionId, modelId, inputs, trigger, enabled, projects, createdAt, updatedAt }
}
