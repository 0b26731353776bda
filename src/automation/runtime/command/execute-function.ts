import {
  type AutomationFunction,
  defineFunction,
  type FunctionBody,
  type FunctionOptions,
} from '../../author/function.ts'
import type { InferInputs, InputsSource } from '../../author/inputs/resolve.ts'
import { isCalledByMainModule } from './main-module.ts'
import type { ProcessTimes } from './run-process.ts'

/** Options of `executeFunction`. */
export interface ExecuteOptions extends FunctionOptions, ProcessTimes {
  /** Whether this call is the program. By default it is, if node was started with the file that calls. */
  readonly main?: boolean
}

/**
 * The entry point of a function's file. When node is started with that file it is a command: `run FILE` (or `FILE`
 * alone), `generate_schema FILE`, `validate`. When the file is imported, by a test or by a host that runs functions in
 * its own process, nothing happens but that the function is returned.
 *
 * Throws `RangeError`, and as `resolveInputs` does.
 */
export function executeFunction<Source extends InputsSource>(
  body: FunctionBody<InferInputs<Source>>,
  Inputs: Source,
  options: ExecuteOptions = {},
): AutomationFunction {
  const {
    main = isCalledByMainModule(executeFunction),
    leaseIntervalMs,
    deliveryTimeoutMs,
    ...functionOptions
  } = options
  const automationFunction = defineFunction(body, Inputs, functionOptions)
  if (main)
    void import('./program.ts').then(({ runProgram }) =>
      runProgram(automationFunction, process.argv.slice(2), present({ leaseIntervalMs, deliveryTimeoutMs })),
    )
  return automationFunction
}

function present(times: { readonly [N in keyof ProcessTimes]: number | undefined }): ProcessTimes {
  return Object.fromEntries(Object.entries(times).filter(([, value]) => value !== undefined))
}
