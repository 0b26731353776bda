import type { BooleanField, InputField, SelectField, TextRules } from '../../automation/author/inputs/description.ts'
import { isThreeState } from '../../automation/author/inputs/form.ts'
import { forgetControl, inputControl, labelOf } from './form-values.ts'
import { describeRules } from './field-hints.ts'
import type { Child, Html } from './html.ts'

/** A label, help, the fault, and a control, linked so that a screen reader reads all of it. */
export interface FieldProps {
  readonly id: string
  readonly label: string
  readonly required?: boolean
  readonly hints?: readonly string[]
  readonly problem?: string | undefined
  readonly children: (aria: Aria) => Child
}

export interface Aria {
  readonly 'aria-describedby'?: string
  readonly 'aria-invalid'?: 'true'
}

export function Field({ id, label, required = false, hints = [], problem, children }: FieldProps): Html {
  return (
    <div class={problem === undefined ? 'field' : 'field wrong'}>
      <label for={id}>
        <bdi>{label}</bdi>
        <Optional required={required} />
      </label>
      <Help id={id} hints={hints} problem={problem} />
      {children(ariaOf({ id, hints, problem }))}
    </div>
  )
}

function Optional({ required }: { readonly required: boolean }): Html | null {
  return required ? null : <span class="quiet"> (optional)</span>
}

export function Help({ id, hints = [], problem }: Pick<FieldProps, 'id' | 'hints' | 'problem'>): Html {
  return (
    <>
      {hints.length === 0 ? null : (
        <div class="hint" id={`${id}-hint`}>
          {hints.map((hint) => (
            <p>
              <bdi>{hint}</bdi>
            </p>
          ))}
        </div>
      )}
      {problem === undefined ? null : (
        <p class="complaint" id={`${id}-error`}>
          <span class="hidden">Error: </span>
          {problem}
        </p>
      )}
    </>
  )
}

export function ariaOf({ id, hints = [], problem }: Pick<FieldProps, 'id' | 'hints' | 'problem'>): Aria {
  const described = [...(hints.length === 0 ? [] : [`${id}-hint`]), ...(problem === undefined ? [] : [`${id}-error`])]
  return {
    ...(described.length === 0 ? {} : { 'aria-describedby': described.join(' ') }),
    ...(problem === undefined ? {} : { 'aria-invalid': 'true' }),
  }
}

export interface InputControlProps {
  readonly field: InputField
  readonly id: string
  /** Empty for secrets, always. */
  readonly value: string
  /** Whether this secret already has a value. */
  readonly kept: boolean
  readonly problem?: string | undefined
}

/** Longer texts get room for lines. */
const LINE_CHARACTERS_MAX = 300

/**
 * The control for one input of a function, by its kind. What browsers could check is left to the server, whose messages
 * are the same everywhere.
 */
export function InputControl(props: InputControlProps): Html {
  const { field, id, problem } = props
  if (field.kind === 'boolean' && !isThreeState(field)) return <Checkbox {...props} field={field} />
  const rules = [describeRules(field), defaultWords(field), keptWords(props)].filter((words) => words !== '').join(' ')
  const hints = [field.description ?? '', rules].filter((hint) => hint.trim() !== '')
  return (
    <>
      <Field
        id={id}
        label={labelOf(field)}
        required={field.required || hasDefault(field)}
        hints={hints}
        problem={problem}
      >
        {(aria) => controlOf(props, aria)}
      </Field>
      {props.kept && field.kind === 'secret' && !field.required ? <ForgetSecret field={field} id={id} /> : null}
    </>
  )
}

function hasDefault(field: InputField): boolean {
  return 'default' in field && field.default !== undefined && field.default !== ''
}

/** A list of choices shows its default itself. */
function defaultWords(field: InputField): string {
  if (!('default' in field) || field.default === undefined || field.kind === 'boolean' || field.kind === 'select')
    return ''
  if (field.kind !== 'text') return `If empty: ${field.default}.`
  return field.default === '' ? '' : `If empty: “${field.default}”.`
}

function keptWords({ field, kept }: InputControlProps): string {
  return kept && field.kind === 'secret' ? 'A value is stored but not shown. Leave this empty to keep it.' : ''
}

function controlOf(props: InputControlProps, aria: Aria): Child {
  const { field, id, value, kept } = props
  const name = inputControl(field.name)
  const required = field.required && !kept
  if (field.kind === 'secret')
    return (
      <input
        id={id}
        name={name}
        type="password"
        autocomplete="new-password"
        spellcheck={false}
        required={required}
        {...aria}
      />
    )
  if (field.kind === 'select') return <Select field={field} id={id} value={value} aria={aria} />
  if (field.kind === 'boolean') return <ThreeState field={field} id={id} value={value} aria={aria} />
  if (field.kind === 'text' && isLong(field, value))
    return (
      <textarea id={id} name={name} rows={5} required={required} {...aria}>
        {value.startsWith('\n') ? `\n${value}` : value}
      </textarea>
    )
  const inputMode = field.kind === 'text' ? 'text' : numberKeys(field)
  return (
    <input
      id={id}
      name={name}
      type="text"
      inputmode={inputMode}
      autocomplete="off"
      value={value}
      required={required}
      {...aria}
    />
  )
}

function isLong({ maxLength = 0 }: TextRules, value: string): boolean {
  return maxLength > LINE_CHARACTERS_MAX || value.length > LINE_CHARACTERS_MAX || value.includes('\n')
}

/** Keys for digits have no minus on some telephones. */
function numberKeys(
  field: Extract<InputField, { readonly kind: 'number' | 'integer' }>,
): 'numeric' | 'decimal' | 'text' {
  const least = field.gte ?? field.gt
  if (least === undefined || least < 0) return 'text'
  return field.kind === 'integer' ? 'numeric' : 'decimal'
}

function Select({
  field,
  id,
  value,
  aria,
}: {
  readonly field: SelectField
  readonly id: string
  readonly value: string
  readonly aria: Aria
}): Html {
  const open = field.default === undefined ? [{ value: '', label: field.required ? 'Choose one' : 'None' }] : []
  // A choice that there is not any more, or never was: browsers would show the first one.
  const chosen = field.options.some((choice) => String(choice.value) === value) ? value : String(field.default ?? '')
  return (
    <select id={id} name={inputControl(field.name)} required={field.required} {...aria}>
      {[...open, ...field.options].map((choice) => (
        <option dir="auto" value={String(choice.value)} selected={String(choice.value) === chosen}>
          {choice.label ?? choice.value}
        </option>
      ))}
    </select>
  )
}

function ThreeState({
  field,
  id,
  value,
  aria,
}: {
  readonly field: BooleanField
  readonly id: string
  readonly value: string
  readonly aria: Aria
}): Html {
  const choices = [
    ['', 'Not set'],
    ['true', 'Yes'],
    ['false', 'No'],
  ]
  return (
    <select id={id} name={inputControl(field.name)} {...aria}>
      {choices.map(([choice, label]) => (
        <option value={choice} selected={choice === value}>
          {label}
        </option>
      ))}
    </select>
  )
}

function Checkbox({ field, id, value, problem }: InputControlProps & { readonly field: BooleanField }): Html {
  const hints = field.description === undefined || field.description.trim() === '' ? [] : [field.description]
  return (
    <div class={problem === undefined ? 'field choice' : 'field choice wrong'}>
      <input
        id={id}
        name={inputControl(field.name)}
        type="checkbox"
        value="true"
        checked={value === 'true'}
        {...ariaOf({ id, hints, problem })}
      />
      <label for={id}>
        <bdi>{labelOf(field)}</bdi>
      </label>
      <Help id={id} hints={hints} problem={problem} />
    </div>
  )
}

function ForgetSecret({ field, id }: { readonly field: InputField; readonly id: string }): Html {
  return (
    <div class="field choice">
      <input id={`${id}-forget`} name={forgetControl(field.name)} type="checkbox" value="true" />
      <label for={`${id}-forget`}>
        Remove the stored value of <bdi>{labelOf(field)}</bdi>
      </label>
    </div>
  )
}
