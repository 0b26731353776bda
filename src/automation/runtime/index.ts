/// <reference types="node" preserve="true" />

/**
 * The parts that run a function: descriptions and checks of inputs, run backends, reporting. For hosts and executors.
 *
 * @module stowage/automation/runtime
 *
 * @example
 * import { defineInputs, text } from 'stowage/automation'
 * import { fromFormValues, inputsParser } from 'stowage/automation/runtime'
 *
 * class Inputs extends defineInputs({ category: text({ title: 'Category' }) }) {}
 *
 * const { json } = fromFormValues(Inputs.description, [['category', 'Walls']])
 * const { category } = inputsParser(Inputs.description)(json)
 * console.log(category)
 */

export {
  type FinalRunStatus,
  type LogLevel,
  type LogLine,
  canTransition,
  RUN_STATUS_RANK,
  type RunFile,
  type RunReport,
} from '../author/run-data.ts'
export {
  type BooleanField,
  type InputField,
  INPUTS_LIMITS,
  type InputsDescription,
  type InputsLimits,
  type InputValue,
  type InputValues,
  type NamedField,
  type NumberField,
  type NumberRules,
  type SecretField,
  type SelectChoice,
  type SelectField,
  type TextField,
  type TextRules,
} from '../author/inputs/description.ts'
export { type FormInputs, fromFormValues, isThreeState } from '../author/inputs/form.ts'
export { readInputsSchema } from '../author/inputs/read-schema.ts'
export { type ResolvedInputs, resolveInputs } from '../author/inputs/resolve.ts'
export { type InputSchema, type InputsSchema, inputsSchema, JSON_SCHEMA_DIALECT } from '../author/inputs/schema.ts'
export { inputsParser, secretTexts } from '../author/inputs/validate.ts'
export type { ProcessTimes } from './command/run-process.ts'
export { httpRunBackend, type HttpRunBackendOptions } from './http/http-run-backend.ts'
export type { NewArtifact, NewVersion, RunBackend, RunLease, SignalOptions, TriggeringVersion } from './run-backend.ts'
export { failCurrentRun } from './run/failures.ts'
export type { RunRetryOptions } from './run/retry.ts'
export { runFunction, type StartedRun, startRun } from './run/run-function.ts'
export type { RunOptions, RunOutcome } from './run/run-options.ts'
export { SecretRedactor } from './run/secret-redactor.ts'
