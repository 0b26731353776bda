import { readInputsSchema } from '../../automation/author/inputs/read-schema.ts'
import type { Automation, FunctionInfo, Model } from '../../automation-server/schemas/types.ts'
import { StowageError } from '../../errors.ts'
import type { Answer } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import {
  checkInputs,
  type FormValues,
  inputProblems,
  isTrigger,
  keptSecrets,
  modelProblems,
  nameProblems,
  newValues,
  type Problem,
  refusalProblems,
  sentValues,
  triggerProblems,
  valuesOf,
} from '../views/form-values.ts'
import { readForm } from '../forms/form-body.ts'
import { undefinedIfNotFound, runRows } from '../views/run-rows.ts'
import type { PageServer } from '../server/page-server.tsx'
import { AutomationPage } from '../views/automation.tsx'
import { AutomationFormPage } from '../views/automation-form.tsx'
import { pageAnswer, type ProjectVisit, seeOther } from '../server/visit.ts'

const MODELS_SHOWN = 1_000
const VERSIONS_SHOWN = 100
const RUNS_SHOWN = 10
const NO_INPUTS = { fields: [] }

/** Automations: made, looked at, changed, started and deleted. */
export function automationResources<H>(server: PageServer<H>): readonly Resource<H>[] {
  return [
    server.project(
      '/functions/:functionId/new',
      {
        GET: async (visit) => {
          const definition = definitionOf(visit, visit.exchange.params.functionId)
          const values = newValues(readInputsSchema(definition.inputs), {
            name: definition.name,
            modelId: visit.exchange.query.get('modelId') ?? '',
          })
          return formAnswer(visit, { definition, values, problems: [] })
        },
        POST: async (visit) => submit(visit, definitionOf(visit, visit.exchange.params.functionId)),
      },
      'write',
    ),
    server.project('/automations/:automationId', { GET: show }),
    server.project(
      '/automations/:automationId/edit',
      {
        GET: async (visit) => {
          const automation = await visit.project.automations.get(visit.exchange.params.automationId)
          const definition = definitionOf(visit, automation.functionId)
          return formAnswer(visit, {
            definition,
            automation,
            values: valuesOf(readInputsSchema(definition.inputs), automation),
            problems: [],
          })
        },
        POST: async (visit) => {
          const automation = await visit.project.automations.get(visit.exchange.params.automationId)
          return submit(visit, definitionOf(visit, automation.functionId), automation)
        },
      },
      'write',
    ),
    server.project('/automations/:automationId/run', {
      POST: async ({ exchange, project, projectId, principal: startedBy, urls }) => {
        const versionId = (await readForm(exchange)).get('versionId') ?? ''
        const run = await project.runs.start(exchange.params.automationId, {
          startedBy,
          ...(versionId === '' ? {} : { versionId }),
        })
        return seeOther(urls.run(projectId, run.id))
      },
    }),
    server.project('/automations/:automationId/delete', {
      POST: async ({ exchange, project, projectId, urls }) => {
        await project.automations.remove(exchange.params.automationId)
        return seeOther(urls.project(projectId))
      },
    }),
  ]
}

async function show<H>({
  frame,
  projectId,
  project,
  automation: extension,
  mayWrite,
  exchange: { params },
}: ProjectVisit<H>): Promise<Answer> {
  const automation = await project.automations.get(params.automationId)
  const definition = extension.functions().find(({ id }) => id === automation.functionId)
  const [model, runs] = await Promise.all([
    undefinedIfNotFound(project.models.get(automation.modelId)),
    project.runs.list({ automationId: automation.id, limit: RUNS_SHOWN }),
  ])
  const versions = model === undefined ? [] : (await project.versions.list(model.id, { limit: VERSIONS_SHOWN })).items
  const description = definition === undefined ? NO_INPUTS : readInputsSchema(definition.inputs)
  return pageAnswer(
    <AutomationPage
      frame={frame}
      projectId={projectId}
      automation={automation}
      definition={definition}
      description={description}
      model={model}
      versions={versions}
      runs={await runRows(project, runs.items)}
      mayWrite={mayWrite}
    />,
  )
}

/** Creates the automation of a sent form, or changes this one. */
async function submit<H>(visit: ProjectVisit<H>, definition: FunctionInfo, automation?: Automation): Promise<Answer> {
  const { project, projectId, urls, exchange } = visit
  const description = readInputsSchema(definition.inputs)
  const entries = await readForm(exchange)
  const values = sentValues(description, entries)
  const { inputs, issues } = checkInputs(description, entries, keptSecrets(description, automation?.inputs ?? {}))
  const form = { definition, values, ...(automation === undefined ? {} : { automation }) }
  const problems = [
    ...nameProblems(values.name),
    ...(automation === undefined ? await modelProblems(project, values.modelId) : []),
    ...triggerProblems(values.trigger),
    ...inputProblems(description, issues),
  ]
  if (problems.length > 0 || !isTrigger(values.trigger)) return formAnswer(visit, { ...form, problems })
  const { name, modelId, trigger, enabled } = values
  const given = { name, trigger, enabled, inputs }
  try {
    const { id } =
      automation === undefined
        ? await project.automations.create({ ...given, modelId, functionId: definition.id })
        : await project.automations.change(automation.id, given)
    return seeOther(urls.automation(projectId, id))
  } catch (error) {
    return formAnswer(visit, { ...form, problems: refusalProblems(description, error) })
  }
}

interface Form {
  readonly definition: FunctionInfo
  readonly values: FormValues
  readonly problems: readonly Problem[]
  readonly automation?: Automation
}

async function formAnswer<H>(
  { frame, urls, projectId, project }: ProjectVisit<H>,
  { definition, values, problems, automation }: Form,
): Promise<Answer> {
  const description = readInputsSchema(definition.inputs)
  const models: readonly Model[] =
    automation === undefined ? (await project.models.list({ limit: MODELS_SHOWN })).items : []
  const crumbs = [
    { text: 'Projects', href: urls.home },
    { text: projectId, href: urls.project(projectId) },
    ...(automation === undefined ? [] : [{ text: automation.name, href: urls.automation(projectId, automation.id) }]),
  ]
  const action =
    automation === undefined
      ? urls.newAutomation(projectId, definition.id)
      : urls.automation(projectId, automation.id, 'edit')
  const page = (
    <AutomationFormPage
      frame={frame}
      crumbs={crumbs}
      definition={definition}
      description={description}
      values={values}
      problems={problems}
      models={models}
      keptSecrets={keptSecrets(description, automation?.inputs ?? {})}
      action={action}
      {...(automation === undefined ? {} : { automation })}
    />
  )
  return pageAnswer(page, problems.length > 0 ? 422 : 200)
}

/** Throws `not_found`. */
function definitionOf<H>({ automation }: ProjectVisit<H>, functionId: string): FunctionInfo {
  const found = automation.functions().find(({ id }) => id === functionId)
  if (found === undefined) throw new StowageError('not_found', 'this function is not registered with this service')
  return found
}
