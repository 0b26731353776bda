import { type ErrorBody, StowageError } from '../../../errors.ts'

/**
 * One thing that is wrong. `message` reads on from the name of the field, such as "must be less than 100", and never
 * holds a value.
 */
export interface InputsIssue {
  /**
   * Of inputs the name of the field, of a schema a JSON Pointer (RFC 6901) such as `/properties/tolerance/minimum`;
   * empty for the whole.
   */
  readonly path: string
  /** Continues the name of the input. It never holds a value. */
  readonly message: string
}

/** The body of an answer that refuses inputs: each issue with its field. */
export interface InputsErrorBody extends ErrorBody {
  /** The faults of the inputs. */
  readonly issues: readonly InputsIssue[]
}

const ISSUES_IN_MESSAGE_MAX = 10
const QUOTED_LENGTH_MAX = 60

/**
 * Inputs that a function cannot take (`invalid_inputs`), or a schema that no form can be made from
 * (`invalid_inputs_schema`).
 */
export class InputsError extends StowageError {
  /** The faults of the inputs. */
  readonly issues: readonly InputsIssue[]

  constructor(code: 'invalid_inputs' | 'invalid_inputs_schema', issues: readonly InputsIssue[]) {
    const what = code === 'invalid_inputs' ? 'the inputs' : 'the schema of the inputs'
    const shown = issues
      .slice(0, ISSUES_IN_MESSAGE_MAX)
      .map(({ path, message }) => `${path === '' ? what : quote(path)} ${message}`)
    const left = issues.length - shown.length
    super(code, `${what} cannot be used: ${shown.join('; ')}${left > 0 ? `; and ${left} more` : ''}`)
    this.issues = issues
  }

  /** The body of the answer: the message, the status, the code and the issues. */
  override toJSON(): InputsErrorBody {
    return { ...super.toJSON(), issues: this.issues }
  }
}

/** Foreign text within a message: in quotes, on one line, and cut. */
export function quote(text: string): string {
  return JSON.stringify(text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX)}…` : text)
}
