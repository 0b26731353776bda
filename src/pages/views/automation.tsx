import type { InputField, InputsDescription } from '../../automation/author/inputs/description.ts'
import type { JsonObject } from '../../automation/author/run-data.ts'
import type { Automation, FunctionInfo, Model, Version } from '../../automation-server/schemas/types.ts'
import { labelOf, textOf } from './form-values.ts'
import type { RunRow } from './run-rows.ts'
import { cut, type Html, isolated } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { Empty, ModelFact, Time } from './parts.tsx'
import { RunRows } from './runs.tsx'

const MESSAGE_CHARACTERS_MAX = 100

interface AutomationProps {
  readonly frame: Frame
  readonly projectId: string
  readonly automation: Automation
  /** `undefined` for a function that is not registered any more. */
  readonly definition: FunctionInfo | undefined
  readonly description: InputsDescription
  readonly model: Model | undefined
  readonly versions: readonly Version[]
  readonly runs: readonly RunRow[]
  readonly mayWrite: boolean
}

export function AutomationPage(props: AutomationProps): Html {
  const { frame, projectId, automation, definition, model, runs, mayWrite } = props
  const { urls } = frame
  const { id, name, trigger, enabled, functionId } = automation
  return (
    <Page
      frame={frame}
      title={name}
      crumbs={[
        { text: 'Projects', href: urls.home },
        { text: projectId, href: urls.project(projectId) },
      ]}
    >
      <h1>
        <bdi>{name}</bdi>
      </h1>
      {definition === undefined ? (
        <p class="note">
          Its function <bdi>{functionId}</bdi> is no longer registered with this service, so the automation can neither
          run nor be changed.
        </p>
      ) : null}
      <dl class="facts">
        <dt>Function</dt>
        <dd>
          <bdi>{definition?.name ?? functionId}</bdi>
        </dd>
        <ModelFact urls={urls} projectId={projectId} model={model} />
        <dt>Runs</dt>
        <dd>
          {trigger === 'manual'
            ? 'only when a person starts it'
            : enabled
              ? 'on every new version'
              : 'on new versions, but it is not active'}
        </dd>
        <dt>Changed</dt>
        <dd>
          <Time at={automation.updatedAt} />
        </dd>
      </dl>
      <section aria-labelledby="inputs">
        <h2 id="inputs">Inputs</h2>
        <InputFacts description={props.description} inputs={automation.inputs} />
      </section>
      {mayWrite ? (
        <section aria-labelledby="do">
          <h2 id="do">Run or change</h2>
          <Actions {...props} />
        </section>
      ) : null}
      <section aria-labelledby="runs">
        <h2 id="runs">Latest runs</h2>
        {runs.length === 0 ? (
          <Empty>It has not run yet.</Empty>
        ) : (
          <>
            <RunRows urls={urls} projectId={projectId} rows={runs} />
            <p class="next">
              <a href={urls.runs(projectId, { automationId: id })}>All runs of this automation</a>
            </p>
          </>
        )}
      </section>
    </Page>
  )
}

function InputFacts({
  description,
  inputs,
}: {
  readonly description: InputsDescription
  readonly inputs: JsonObject
}): Html {
  if (description.fields.length === 0) return <Empty>The function has no inputs.</Empty>
  return (
    <dl class="facts">
      {description.fields.map((field) => (
        <>
          <dt>
            <bdi>{labelOf(field)}</bdi>
          </dt>
          <dd class="lines">{valueWords(field, inputs)}</dd>
        </>
      ))}
    </dl>
  )
}

function valueWords(field: InputField, inputs: JsonObject): Html {
  const value = Object.hasOwn(inputs, field.name) ? inputs[field.name] : undefined
  if (value === undefined) return <span class="quiet">not given</span>
  if (field.kind === 'secret') return <span class="quiet">stored, not shown</span>
  if (field.kind === 'boolean') return <>{value === true ? 'Yes' : 'No'}</>
  const label = field.kind === 'select' ? field.options.find((choice) => choice.value === value)?.label : undefined
  return <bdi>{label ?? textOf(value)}</bdi>
}

function Actions({ frame: { urls }, projectId, automation: { id }, definition, versions }: AutomationProps): Html {
  return (
    <>
      {definition === undefined ? null : versions.length === 0 ? (
        <Empty>The model has no version to run on yet.</Empty>
      ) : (
        <form class="inline" method="post" action={urls.automation(projectId, id, 'run')}>
          <div class="field wide">
            <label for="versionId">Version</label>
            <select id="versionId" name="versionId">
              {versions.map(({ id: versionId, message, createdAt }, at) => (
                <option
                  value={versionId}
                >{`${at === 0 ? 'Latest, ' : ''}${createdAt.slice(0, 16).replace('T', ' ')} UTC: ${message === '' ? 'no message' : isolated(cut(message, MESSAGE_CHARACTERS_MAX))}`}</option>
              ))}
            </select>
          </div>
          <button type="submit">Run now</button>
        </form>
      )}
      <div class="actions">
        {definition === undefined ? null : (
          <a class="button second" href={urls.automation(projectId, id, 'edit')}>
            Change
          </a>
        )}
        <details class="confirm">
          <summary>Delete …</summary>
          <form method="post" action={urls.automation(projectId, id, 'delete')}>
            <p>Its runs stay. This cannot be undone.</p>
            <button type="submit" class="danger">
              Delete this automation
            </button>
          </form>
        </details>
      </div>
    </>
  )
}
