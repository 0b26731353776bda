import { createHash } from 'node:crypto'
import { StowageError } from '../../errors.ts'
import type { InputsDescription, InputValues } from '../../automation/author/inputs/description.ts'
import { readInputsSchema } from '../../automation/author/inputs/read-schema.ts'
import { type InputsSource, resolveInputs } from '../../automation/author/inputs/resolve.ts'
import { type InputsSchema, inputsSchema } from '../../automation/author/inputs/schema.ts'
import { inputsParser } from '../../automation/author/inputs/validate.ts'
import { quoted } from '../../object/id.ts'
import { PAGE_ITEMS_DEFAULT } from '../records/store.ts'
import type { FunctionInfo, Page, PageRequest } from '../schemas/types.ts'
import { checkPage } from '../schemas/checks.ts'
import type { RunExecutor } from './executor.ts'

/** The position of the next function, in hex digits. */
const CURSOR = /^[0-9a-f]{1,8}$/

/** A function as a host or an operator registers it. */
export interface FunctionDefinition {
  /** 1 to 100 characters of `A-Z a-z 0-9 . _ -`, the first a letter or digit. */
  readonly id: string
  /** The name, for people. */
  readonly name: string
  /** Text about the function, for people. */
  readonly description?: string
  /** Names the state of its code, such as `1.4.0` or a commit. */
  readonly release: string
  /** A class of `defineInputs`, a Standard Schema that offers a JSON Schema, or the JSON Schema itself. */
  readonly inputs: InputsSource | InputsSchema | Readonly<Record<string, unknown>>
  /** Runs the function. */
  readonly executor: RunExecutor
}

export interface RegisteredFunction {
  readonly view: FunctionInfo
  readonly description: InputsDescription
  /** Inputs with the defaults filled in. Throws `InputsError`. */
  readonly parse: (json: unknown) => InputValues
  /** Names of the inputs that are secrets. */
  readonly secretNames: readonly string[]
  readonly executor: RunExecutor
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const FUNCTIONS_MAX = 1_000
const DIGEST_HEX_DIGITS = 32
const TEXT_CHARACTERS_MAX = 200
const DESCRIPTION_CHARACTERS_MAX = 4_000

/** The functions that this process knows. */
export class FunctionRegistry {
  readonly #functions = new Map<string, RegisteredFunction>()

  /**
   * Throws `TypeError` for a definition that cannot be or an id that is taken, and `InputsError`
   * (`invalid_inputs_schema`) for inputs that no form can show.
   */
  register(definition: FunctionDefinition): FunctionInfo {
    const { id } = definition
    if (!ID.test(id))
      throw new TypeError(
        `a function's id is ${quoted(id)}; it must be 1 to 100 characters of A-Z, a-z, 0-9, ".", "_" and "-", the first a letter or digit`,
      )
    if (this.#functions.has(id))
      throw new TypeError(`the function ${quoted(id)} is already registered; each id may be registered once`)
    if (this.#functions.size >= FUNCTIONS_MAX)
      throw new TypeError(`${FUNCTIONS_MAX} functions are registered, the limit`)
    const registered = registeredFunction(definition)
    this.#functions.set(id, registered)
    return registered.view
  }

  find(functionId: string): RegisteredFunction | undefined {
    return this.#functions.get(functionId)
  }

  /** Throws `not_found`. */
  get(functionId: string): RegisteredFunction {
    const found = this.#functions.get(functionId)
    if (found === undefined) throw new StowageError('not_found', `no function ${quoted(functionId)} is registered`)
    return found
  }

  /** In the order of their ids. */
  list(): readonly FunctionInfo[] {
    return [...this.#functions.values()].map(({ view }) => view).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** A part of the list. Throws `invalid_request`. */
  page(request: PageRequest): Page<FunctionInfo> {
    checkPage(request)
    const { limit = PAGE_ITEMS_DEFAULT, cursor = '0' } = request
    if (!CURSOR.test(cursor))
      throw new StowageError('invalid_request', 'the cursor does not come from a page of functions')
    const from = Number.parseInt(cursor, 16)
    const all = this.list()
    const to = from + limit
    return { items: all.slice(from, to), cursor: to < all.length ? to.toString(16) : null }
  }
}

function registeredFunction({
  id,
  name,
  description = '',
  release,
  inputs,
  executor,
}: FunctionDefinition): RegisteredFunction {
  checkText('name', name, TEXT_CHARACTERS_MAX)
  checkText('release', release, TEXT_CHARACTERS_MAX)
  if (description.length > DESCRIPTION_CHARACTERS_MAX)
    throw new TypeError(
      `a function's description has ${description.length} characters; it must have at most ${DESCRIPTION_CHARACTERS_MAX}`,
    )
  const described = isSource(inputs) ? resolveInputs(inputs).description : readInputsSchema(inputs)
  const schema = inputsSchema(described)
  const version = createHash('sha256')
    .update(JSON.stringify([release, schema]))
    .digest('hex')
    .slice(0, DIGEST_HEX_DIGITS)
  const secretNames = described.fields.filter(({ kind }) => kind === 'secret').map((field) => field.name)
  return {
    view: { id, name, description, release, version, inputs: schema },
    description: described,
    parse: inputsParser(described),
    secretNames,
    executor,
  }
}

function isSource(inputs: FunctionDefinition['inputs']): inputs is InputsSource {
  return typeof inputs === 'function' || '~standard' in inputs
}

function checkText(what: string, text: string, charactersMax: number): void {
  if (text.trim() === '' || text.length > charactersMax)
    throw new TypeError(`a function's ${what} is ${quoted(text)}; it must have 1 to ${charactersMax} characters`)
}
