import type { InputsDescription } from '../../automation/author/inputs/description.ts'
import type { Automation, FunctionInfo, Model } from '../../automation-server/schemas/types.ts'
import { type FormValues, inputControlId, type Problem } from './form-values.ts'
import { Field, Help, InputControl } from './field.tsx'
import type { Html } from './html.ts'
import { type Crumb, type Frame, Page } from './layout.tsx'

export interface AutomationFormProps {
  readonly frame: Frame
  readonly crumbs: readonly Crumb[]
  readonly definition: FunctionInfo
  readonly description: InputsDescription
  readonly values: FormValues
  readonly problems: readonly Problem[]
  readonly models: readonly Model[]
  readonly keptSecrets: ReadonlySet<string>
  /** The automation that is changed; a new one without it. */
  readonly automation?: Automation
  readonly action: string
}

/** The form of a function: a new automation of it, or one that is changed. */
export function AutomationFormPage(props: AutomationFormProps): Html {
  const { frame, crumbs, definition, automation, problems, action, description } = props
  const title = automation === undefined ? `New automation of ${definition.name}` : `Change ${automation.name}`
  return (
    <Page frame={frame} title={problems.length > 0 ? `Error: ${title}` : title} crumbs={crumbs}>
      <Problems problems={problems} />
      <h1>
        <bdi>{title}</bdi>
      </h1>
      {definition.description === '' ? null : (
        <p class="lead">
          <bdi>{definition.description}</bdi>
        </p>
      )}
      <form class="narrow" method="post" action={action} novalidate>
        <OwnFields {...props} />
        <fieldset>
          <legend>
            <bdi>{description.title ?? 'Inputs'}</bdi>
          </legend>
          {description.description === undefined ? null : (
            <p class="hint">
              <bdi>{description.description}</bdi>
            </p>
          )}
          {description.fields.length === 0 ? <p class="empty">This function has no inputs.</p> : null}
          <Inputs {...props} />
        </fieldset>
        <div class="actions">
          <button type="submit">{automation === undefined ? 'Create' : 'Save'}</button>
          <a href={crumbs.at(-1)?.href ?? frame.urls.home}>Cancel</a>
        </div>
      </form>
    </Page>
  )
}

/** The problems, at the top, with links to the fields. It takes the focus, so that nobody has to look for it. */
function Problems({ problems }: { readonly problems: readonly Problem[] }): Html | null {
  if (problems.length === 0) return null
  return (
    <div class="problems" role="alert" tabindex={-1} autofocus aria-labelledby="problems">
      <h2 id="problems">{problems.length === 1 ? 'There is a problem' : `There are ${problems.length} problems`}</h2>
      <ul>
        {problems.map(({ controlId, message }) => (
          <li>
            {controlId === undefined ? (
              <bdi>{message}</bdi>
            ) : (
              <a href={`#${controlId}`}>
                <bdi>{message}</bdi>
              </a>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}

function problemAt(problems: readonly Problem[], id: string): string | undefined {
  return problems.find(({ controlId }) => controlId === id)?.message
}

function OwnFields({ values, problems, models, automation }: AutomationFormProps): Html {
  return (
    <>
      <Field id="name" label="Name" required problem={problemAt(problems, 'name')}>
        {(aria) => (
          <input id="name" name="name" type="text" autocomplete="off" required value={values.name} {...aria} />
        )}
      </Field>
      {automation === undefined ? <ModelField values={values} problems={problems} models={models} /> : null}
      <TriggerField trigger={values.trigger} problem={problemAt(problems, 'trigger-version')} />
      <div class="field choice">
        <input
          id="enabled"
          name="enabled"
          type="checkbox"
          value="true"
          checked={values.enabled}
          aria-describedby="enabled-hint"
        />
        <label for="enabled">Active</label>
        <Help id="enabled" hints={['If this is off, new versions do not start the automation.']} />
      </div>
    </>
  )
}

function ModelField({ values, problems, models }: Pick<AutomationFormProps, 'values' | 'problems' | 'models'>): Html {
  const problem = problemAt(problems, 'modelId')
  const hints = models.length === 0 ? ['This project has no model yet. Create one first, and a version of it.'] : []
  return (
    <Field id="modelId" label="Model" required hints={hints} problem={problem}>
      {(aria) => (
        <select id="modelId" name="modelId" required {...aria}>
          {models.length === 1 ? null : <option value="">Choose one</option>}
          {models.map(({ id, name }) => (
            <option dir="auto" value={id} selected={id === values.modelId}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

function TriggerField({ trigger, problem }: { readonly trigger: string; readonly problem: string | undefined }): Html {
  const choices = [
    ['version', 'On every new version of the model'],
    ['manual', 'Only when a person starts it'],
  ]
  return (
    <fieldset
      class={problem === undefined ? 'choices' : 'choices wrong'}
      aria-describedby={problem === undefined ? undefined : 'trigger-version-error'}
    >
      <legend>When it runs</legend>
      <Help id="trigger-version" problem={problem} />
      {choices.map(([value, label]) => (
        <div class="choice">
          <input id={`trigger-${value}`} name="trigger" type="radio" value={value} checked={value === trigger} />
          <label for={`trigger-${value}`}>{label}</label>
        </div>
      ))}
    </fieldset>
  )
}

function Inputs({ description, values, problems, keptSecrets }: AutomationFormProps): Html {
  return (
    <>
      {description.fields.map((field) => {
        const id = inputControlId(description, field.name)
        return (
          <InputControl
            field={field}
            id={id}
            value={values.inputs.get(field.name) ?? ''}
            kept={keptSecrets.has(field.name)}
            problem={problemAt(problems, id)}
          />
        )
      })}
    </>
  )
}
