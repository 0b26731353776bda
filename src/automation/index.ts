/// <reference types="node" preserve="true" />

export {
  type AutomationRunData,
  type FinalRunStatus,
  type JsonObject,
  type JsonValue,
  type LogLevel,
  type LogLine,
  mayFollow,
  type ObjectResult,
  type ResultLevel,
  RUN_STATUS_RANK,
  type RunFile,
  type RunReport,
  type RunStatus,
  type VersionTrigger,
} from './run-data.ts'
export type { NewArtifact, NewVersion, RunBackend, RunLease, SignalOptions, TriggeringVersion } from './run-backend.ts'
export {
  boolean,
  type BooleanOptions,
  type CommonOptions,
  type Declared,
  type FieldOptions,
  type GivenOf,
  type Input,
  integer,
  number,
  type NumberOptions,
  secret,
  type SecretOptions,
  select,
  type SelectOptions,
  text,
  type TextOptions,
  type TextPatternRules,
  type ValueOf,
} from './inputs/builder.ts'
export {
  defineInputs,
  type GivenValuesOf,
  type InputFields,
  type InputsClass,
  type InputsWords,
  type ValuesOf,
} from './inputs/define.ts'
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
} from './inputs/description.ts'
export { InputsError, type InputsErrorBody, type InputsIssue } from './inputs/errors.ts'
export { type FormInputs, fromFormValues, isThreeState } from './inputs/form.ts'
export { readInputsSchema } from './inputs/read-schema.ts'
export {
  type InferInputs,
  type InputsSource,
  type ResolvedInputs,
  resolveInputs,
  type StandardInputs,
  type StandardResult,
} from './inputs/resolve.ts'
export { type InputSchema, type InputsSchema, inputsSchema, JSON_SCHEMA_DIALECT } from './inputs/schema.ts'
export { Secret } from './inputs/secret.ts'
export { inputsParser, secretTexts } from './inputs/validate.ts'
export type { AnnotatedObject, AutomationContext, NewVersionOptions, RunLog } from './context.ts'
export {
  type AutomationFunction,
  defineFunction,
  type FunctionBody,
  type FunctionOptions,
  RunCanceled,
  RunFailed,
  RunInterrupted,
} from './function.ts'
export { attributeFailure } from './run/failures.ts'
export type { RunRetryOptions } from './run/retry.ts'
export { runFunction, type RunOptions, type RunOutcome, type StartedRun, startRun } from './run/run-function.ts'
export { Scrubber } from './run/scrubber.ts'
export { httpRunBackend, type HttpRunBackendOptions } from './http/http-run-backend.ts'
export { executeFunction, type ExecuteOptions } from './command/execute-function.ts'
export type { ProcessTimes } from './command/run-process.ts'
export { testFunction, type TestedRun, type TestFunctionOptions } from './testing/test-function.ts'
export type { TestArtifact, TestVersion } from './testing/memory-run-backend.ts'
export type { Client } from '../client/client.ts'
export type { DagObject } from '../client/types.ts'
