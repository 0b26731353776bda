import type { RetentionRule } from '../../automation-server/schemas/types.ts'
import { checkMessage, checkName } from '../../automation-server/schemas/checks.ts'
import { StowageError } from '../../errors.ts'
import type { Answer } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import type { PinStore } from '../../object/roots.ts'
import { readForm } from '../forms/form-body.ts'
import type { PageServer } from '../server/page-server.tsx'
import { pageAnswer, type ProjectVisit, seeOther } from '../server/visit.ts'
import { CollectionPage } from '../views/collection.tsx'
import { ModelUsagePage } from '../views/model-usage.tsx'
import type { PinValues, RefusedPin } from '../views/pins.tsx'
import type { RefusedRetention, RetentionValues } from '../views/retention.tsx'
import { undefinedIfNotFound } from '../views/run-rows.ts'
import { UsagePage } from '../views/usage.tsx'
import { showModel } from './project.tsx'

const MODELS_COUNTED_SHOWN = 1_000
const VERSIONS_COUNTED_SHOWN = 50
const DAY_MS = 86_400_000
const DAYS_MAX = 36_500
/** Refusals of a pin or a rule that the form shows; others are pages of their own. */
const REFUSALS: ReadonlySet<string> = new Set(['invalid_request', 'invalid_id', 'objects_missing', 'conflict'])

/** What is kept, what it takes, and what may go: usage, pins, retention rules, collection. */
export function keepingResources<H>(server: PageServer<H>): readonly Resource<H>[] {
  return [
    server.project('/usage', { GET: (visit) => showUsage(visit) }),
    server.project('/models/:modelId/usage', { GET: showModelUsage }),
    server.project('/pins', { POST: addPin }),
    server.project('/pins/:pinId/remove', {
      POST: async ({ context, exchange: { params }, projectId, urls }) => {
        await pinsOf(context).remove(projectId, params.pinId)
        return seeOther(urls.usage(projectId))
      },
    }),
    server.project('/models/:modelId/retention', { POST: changeRetention }),
    server.project('/models/:modelId/versions/:versionId/keep', { POST: (visit) => markVersion(visit, true) }),
    server.project('/models/:modelId/versions/:versionId/unkeep', { POST: (visit) => markVersion(visit, false) }),
    server.project(
      '/collection',
      {
        GET: async ({ frame, projectId, context, exchange: { signal } }) => {
          const report = await undefinedIfNotFound(context.upkeepOf(projectId).collect({ dryRun: true, signal }))
          return pageAnswer(<CollectionPage frame={frame} projectId={projectId} report={report} />)
        },
        POST: async ({ context, projectId, urls, exchange: { signal } }) => {
          await context.upkeepOf(projectId).collect({ signal })
          return seeOther(urls.collection(projectId))
        },
      },
      'write',
    ),
    server.project('/collection/restore', {
      POST: async ({ context, projectId, urls, exchange: { signal } }) => {
        await context.upkeepOf(projectId).restoreCollected({ signal })
        return seeOther(urls.collection(projectId))
      },
    }),
  ]
}

async function showUsage<H>(visit: ProjectVisit<H>, refused?: RefusedPin): Promise<Answer> {
  const { frame, projectId, project, context, mayWrite, exchange } = visit
  const usage = await context.usage(projectId, exchange.signal)
  const shown = usage.groups.slice(0, MODELS_COUNTED_SHOWN)
  const models = await Promise.all(shown.map(async ({ groupId }) => undefinedIfNotFound(project.models.get(groupId))))
  const byId = new Map(models.flatMap((model) => (model === undefined ? [] : [[model.id, model] as const])))
  const pins = (await context.pins?.list(projectId)) ?? []
  const page = { frame, projectId, usage: { ...usage, groups: shown }, models: byId, pins, refused, mayWrite }
  return pageAnswer(<UsagePage {...page} />, refused === undefined ? 200 : 422)
}

async function showModelUsage<H>(visit: ProjectVisit<H>): Promise<Answer> {
  const { frame, projectId, project, context, exchange } = visit
  const { params, query, signal } = exchange
  const model = await project.models.get(params.modelId)
  const before = query.get('before')
  const { roots } = await context.usage(projectId, signal)
  // Ids of versions sort by their age.
  const counted = roots
    .filter(({ groupId, id }) => groupId === model.id && (before === null || id < before))
    .sort((a, b) => (a.id < b.id ? 1 : -1))
  const shown = counted.slice(0, VERSIONS_COUNTED_SHOWN)
  const versions = await Promise.all(
    shown.map(async (usage) => ({
      usage,
      version: await undefinedIfNotFound(project.versions.get(model.id, usage.id)),
    })),
  )
  const next = counted.length > shown.length ? shown.at(-1)?.id : undefined
  return pageAnswer(<ModelUsagePage {...{ frame, projectId, model, versions, next }} />)
}

async function addPin<H>(visit: ProjectVisit<H>): Promise<Answer> {
  const { context, projectId, urls, exchange } = visit
  const entries = await readForm(exchange)
  const typed = (name: string): string => (entries.get(name) ?? '').trim()
  const values: PinValues = {
    rootObjectId: typed('rootObjectId'),
    name: typed('name'),
    reason: typed('reason'),
    days: typed('days'),
  }
  try {
    const { rootObjectId, name, reason } = values
    if (name !== '') checkName(name, 'The name')
    checkMessage(reason, 'The reason')
    await pinsOf(context).add(projectId, {
      rootObjectId,
      name: name === '' ? null : name,
      reason: reason === '' ? null : reason,
      lifetimeMs: values.days === '' ? undefined : numberOf('The number of days', values.days, DAYS_MAX) * DAY_MS,
    })
    return seeOther(urls.usage(projectId))
  } catch (error) {
    return showUsage(visit, { values, problem: problemOf(error) })
  }
}

async function changeRetention<H>(visit: ProjectVisit<H>): Promise<Answer> {
  const { project, projectId, urls, exchange } = visit
  const { modelId } = exchange.params
  const entries = await readForm(exchange)
  const typed = (name: string): string => (entries.get(name) ?? '').trim()
  const values: RetentionValues = {
    keepLastCount: typed('keepLastCount'),
    keepDailyDays: typed('keepDailyDays'),
    keepAllDays: typed('keepAllDays'),
  }
  try {
    await project.models.change(modelId, { retention: ruleOf(values) })
    return seeOther(urls.model(projectId, modelId))
  } catch (error) {
    const refused: RefusedRetention = { values, problem: problemOf(error) }
    return showModel(visit, refused)
  }
}

/** `null` for a rule without members: every version is kept. */
function ruleOf({ keepLastCount, keepDailyDays, keepAllDays }: RetentionValues): RetentionRule | null {
  const rule: RetentionRule = {
    ...(keepLastCount !== '' && { keepLastCount: numberOf('The number of newest versions', keepLastCount, 100_000) }),
    ...(keepDailyDays !== '' && {
      keepDailyDays: numberOf('The number of days of daily versions', keepDailyDays, DAYS_MAX),
    }),
    ...(keepAllDays !== '' && { keepAllDays: numberOf('The number of days of all versions', keepAllDays, DAYS_MAX) }),
  }
  return Object.keys(rule).length === 0 ? null : rule
}

function numberOf(what: string, text: string, max: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (value >= 1 && value <= max) return value
  throw new StowageError('invalid_request', `${what} must be a whole number from 1 to ${max.toLocaleString('en')}.`)
}

async function markVersion<H>(
  { project, projectId, urls, exchange: { params } }: ProjectVisit<H>,
  kept: boolean,
): Promise<Answer> {
  await project.versions.change(params.modelId, params.versionId, { kept })
  return seeOther(`${urls.model(projectId, params.modelId)}#version-${params.versionId}`)
}

/** The words for the form; throws what is not a refusal. */
function problemOf(error: unknown): string {
  if (error instanceof StowageError && REFUSALS.has(error.code)) return error.message
  throw error
}

function pinsOf({ pins }: { readonly pins: PinStore | undefined }): PinStore {
  if (pins === undefined) throw new StowageError('not_supported', 'pins need a storage backend')
  return pins
}
