import { projectKey } from '../records/keys.ts'
import { type AutomationStore, PAGE_ITEMS_DEFAULT, type ProjectScope } from '../records/store.ts'
import type { Page, Run, RunFilter } from '../schemas/types.ts'
import { type RunRecord, runView } from './run-record.ts'

/** Runs that are looked at for one page of a filtered list; a page may be short before the end. */
const SCANNED_MAX = 2_000

/** The runs of a project that fit, the newest first. */
export async function listRuns(store: AutomationStore, scope: ProjectScope, filter: RunFilter): Promise<Page<Run>> {
  const { limit = PAGE_ITEMS_DEFAULT } = filter
  const items: Run[] = []
  let cursor = filter.cursor ?? null
  for (let scanned = 0; scanned < SCANNED_MAX;) {
    const page = await scan(store, scope, filter, {
      limit: Math.max(limit, PAGE_ITEMS_DEFAULT),
      cursor: cursor ?? undefined,
    })
    for (const { name, value } of page.items) {
      cursor = name
      if (value !== undefined && fits(value, filter) && items.push(runView(value)) === limit)
        return { items, cursor: isLast(page, name) ? null : cursor }
    }
    scanned += page.items.length
    if (page.cursor === null) return { items, cursor: null }
  }
  return { items, cursor }
}

async function scan(
  store: AutomationStore,
  scope: ProjectScope,
  { automationId }: RunFilter,
  request: { readonly limit: number; readonly cursor: string | undefined },
): Promise<Page<Scanned>> {
  if (automationId === undefined)
    return store.page<RunRecord>(projectKey(scope, 'run'), { ...request, newestFirst: true })
  const { items, cursor } = await store.page(projectKey(scope, 'of', automationId), { ...request, newestFirst: true })
  const runs = await store.getMany<RunRecord>(items.map(({ name }) => projectKey(scope, 'run', name)))
  return { items: items.map(({ name }, at) => ({ name, value: runs[at] })), cursor }
}

/** One page of the runs of an automation, the newest first. */
export async function newestRunsOf(
  store: AutomationStore,
  scope: ProjectScope,
  automationId: string,
): Promise<readonly RunRecord[]> {
  const { items } = await scan(store, scope, { automationId }, { limit: PAGE_ITEMS_DEFAULT, cursor: undefined })
  return items.flatMap(({ value }) => value ?? [])
}

interface Scanned {
  readonly name: string
  readonly value: RunRecord | undefined
}

function isLast(page: Page<Scanned>, name: string): boolean {
  return page.cursor === null && page.items.at(-1)?.name === name
}

function fits(
  run: RunRecord,
  { modelId = run.modelId, versionId = run.versionId, status = run.status }: RunFilter,
): boolean {
  return run.modelId === modelId && run.versionId === versionId && run.status === status
}
