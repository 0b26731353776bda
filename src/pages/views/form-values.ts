import type { InputField, InputsDescription } from '../../automation/author/inputs/description.ts'
import { InputsError, type InputsIssue } from '../../automation/author/inputs/errors.ts'
import { fromFormValues } from '../../automation/author/inputs/form.ts'
import { inputsParser } from '../../automation/author/inputs/validate.ts'
import type { JsonObject, JsonValue } from '../../automation/author/run-data.ts'
import type { AutomationProject } from '../../automation-server/automation-project.ts'
import { checkName, NAME_CHARACTERS_MAX } from '../../automation-server/schemas/checks.ts'
import type { Automation, AutomationTrigger } from '../../automation-server/schemas/types.ts'
import { StowageError } from '../../errors.ts'
import type { FormEntries } from '../forms/form-body.ts'

/** The values of an automation's form, as texts. */
export interface FormValues {
  readonly name: string
  readonly modelId: string
  readonly trigger: string
  readonly enabled: boolean
  /** By the names of the inputs. Never holds a secret. */
  readonly inputs: ReadonlyMap<string, string>
}

/** A fault in a form, as a sentence; `controlId` is absent if it concerns all of it. */
export interface Problem {
  readonly controlId?: string
  readonly message: string
}

/** The names of the controls of inputs, so that an input may have any name. */
const INPUT_PREFIX = 'input.'
const FORGET_PREFIX = 'forget.'
/** The placeholder for a secret; if it is sent back, the secret stays unchanged. */
const REDACTED = '******'

export function inputControl(name: string): string {
  return `${INPUT_PREFIX}${name}`
}

/** A checkbox that removes an optional secret. */
export function forgetControl(name: string): string {
  return `${FORGET_PREFIX}${name}`
}

/**
 * Ids of controls occur in addresses and in lists separated by spaces, and inputs may have any name: so controls are
 * numbered.
 */
export function inputControlId(description: InputsDescription, name: string): string {
  return `input-${description.fields.findIndex((field) => field.name === name)}`
}

export function labelOf({ title, name }: Pick<InputField, 'title' | 'name'>): string {
  return title === undefined || title.trim() === '' ? name : title
}

/** A new automation: the defaults. */
export function newValues(
  description: InputsDescription,
  { name, modelId }: Pick<FormValues, 'name' | 'modelId'>,
): FormValues {
  return { name, modelId, trigger: 'version', enabled: true, inputs: textsOf(description, defaultsOf(description)) }
}

/**
 * The current values of an automation. Inputs that its function has gained since it was saved show their defaults, with
 * which it runs.
 */
export function valuesOf(
  description: InputsDescription,
  { name, modelId, trigger, enabled, inputs }: Automation,
): FormValues {
  return { name, modelId, trigger, enabled, inputs: textsOf(description, { ...defaultsOf(description), ...inputs }) }
}

function defaultsOf({ fields }: InputsDescription): JsonObject {
  return Object.fromEntries(
    fields.flatMap((field) =>
      'default' in field && field.default !== undefined
        ? [[field.name, field.default] satisfies [string, JsonValue]]
        : [],
    ),
  )
}

/** The submitted values, to be shown again. */
export function sentValues(description: InputsDescription, entries: FormEntries): FormValues {
  const text = (name: string): string => entries.get(name) ?? ''
  const inputs = description.fields
    .filter(({ kind }) => kind !== 'secret')
    .map(({ name }) => [name, text(inputControl(name))] satisfies [string, string])
  return {
    name: text('name'),
    modelId: text('modelId'),
    trigger: text('trigger'),
    enabled: text('enabled') !== '',
    inputs: new Map(inputs),
  }
}

function textsOf({ fields }: InputsDescription, inputs: JsonObject): ReadonlyMap<string, string> {
  return new Map(
    fields.flatMap(({ name, kind }) =>
      kind !== 'secret' && Object.hasOwn(inputs, name) ? [[name, textOf(inputs[name])] satisfies [string, string]] : [],
    ),
  )
}

/** A value of an input as its control holds it. */
export function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Names of the secrets that an automation has a value of. */
export function keptSecrets({ fields }: InputsDescription, inputs: JsonObject): ReadonlySet<string> {
  return new Set(
    fields.filter(({ name, kind }) => kind === 'secret' && Object.hasOwn(inputs, name)).map(({ name }) => name),
  )
}

export interface CheckedInputs {
  readonly inputs: JsonObject
  readonly issues: readonly InputsIssue[]
}

/**
 * The inputs of a submitted form as JSON, and their faults. A secret that was left empty stays unchanged, if there is
 * one.
 */
export function checkInputs(
  description: InputsDescription,
  entries: FormEntries,
  kept: ReadonlySet<string> = new Set(),
): CheckedInputs {
  const own = [...entries]
    .filter(([name]) => name.startsWith(INPUT_PREFIX))
    .map(([name, value]) => [name.slice(INPUT_PREFIX.length), value] as const)
  const { json, emptySecrets } = fromFormValues(description, own)
  const staying = emptySecrets.filter((name) => kept.has(name) && !entries.has(forgetControl(name)))
  const inputs = { ...json, ...Object.fromEntries(staying.map((name) => [name, REDACTED])) } as JsonObject
  try {
    inputsParser(description)(inputs)
    return { inputs, issues: [] }
  } catch (error) {
    if (!(error instanceof InputsError)) throw error
    // An unchanged secret was valid when it was given; the asterisks that stand for it need not be.
    return { inputs, issues: error.issues.filter(({ path }) => !staying.includes(path)) }
  }
}

/** Issues of inputs as sentences that begin with the label of the field. */
export function inputProblems(description: InputsDescription, issues: readonly InputsIssue[]): readonly Problem[] {
  return issues.map(({ path, message }) => {
    const field = description.fields.find(({ name }) => name === path)
    return field === undefined
      ? { message: `The form ${message}.` }
      : { controlId: inputControlId(description, path), message: `${labelOf(field)} ${message}.` }
  })
}

export function nameProblems(name: string): readonly Problem[] {
  try {
    checkName(name, 'the name')
    return []
  } catch {
    return [
      {
        controlId: 'name',
        message:
          name.trim() === ''
            ? 'Name is required.'
            : `Name must be one line of at most ${NAME_CHARACTERS_MAX} characters.`,
      },
    ]
  }
}

export async function modelProblems(project: AutomationProject, modelId: string): Promise<readonly Problem[]> {
  if (modelId === '') return [{ controlId: 'modelId', message: 'Model is required.' }]
  try {
    await project.models.get(modelId)
    return []
  } catch (error) {
    if (!(error instanceof StowageError) || error.statusCode >= 500) throw error
    return [{ controlId: 'modelId', message: 'Model must be one of this project.' }]
  }
}

export function triggerProblems(trigger: string): readonly Problem[] {
  return isTrigger(trigger)
    ? []
    : [{ controlId: 'trigger-version', message: 'The trigger must be one of the choices.' }]
}

export function isTrigger(text: string): text is AutomationTrigger {
  return text === 'version' || text === 'manual'
}

/**
 * Refusals by the server itself, for example because another person was faster. Throws errors that no change of the
 * form can mend.
 */
export function refusalProblems(description: InputsDescription, error: unknown): readonly Problem[] {
  if (error instanceof InputsError) return inputProblems(description, error.issues)
  if (!(error instanceof StowageError) || error.statusCode >= 500) throw error
  return [{ message: `${error.message.slice(0, 1).toUpperCase()}${error.message.slice(1)}.` }]
}
