/// <reference types="node" preserve="true" />

export {
  type AutomationRunData,
  type FinalRunStatus,
  type JsonObject,
  type JsonValue,
  type LogLevel,
  type LogLine,
  mayFollow,
  type Annotation,
  type AnnotationLevel,
  RUN_STATUS_RANK,
  type RunFile,
  type RunReport,
  type RunStatus,
  type VersionTrigger,
} from './author/run-data.ts'
export type {
  NewArtifact,
  NewVersion,
  RunBackend,
  RunLease,
  SignalOptions,
  TriggeringVersion,
} from './runtime/run-backend.ts'
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
} from './author/inputs/builder.ts'
export {
  defineInputs,
  type GivenValuesOf,
  type InputFields,
  type InputsClass,
  type InputsWords,
  type ValuesOf,
} from './author/inputs/define.ts'
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
} from './author/inputs/description.ts'
export { InputsError, type InputsErrorBody, type InputsIssue } from './author/inputs/errors.ts'
export { type FormInputs, fromFormValues, isThreeState } from './author/inputs/form.ts'
export { readInputsSchema } from './author/inputs/read-schema.ts'
export {
  type InferInputs,
  type InputsSource,
  type ResolvedInputs,
  resolveInputs,
  type StandardInputs,
  type StandardResult,
} from './author/inputs/resolve.ts'
export { type InputSchema, type InputsSchema, inputsSchema, JSON_SCHEMA_DIALECT } from './author/inputs/schema.ts'
export { Secret } from './author/inputs/secret.ts'
export { inputsParser, secretTexts } from './author/inputs/validate.ts'
export type { AnnotatedObject, AutomationContext, NewVersionOptions, RunLog } from './author/context.ts'
export {
  type AutomationFunction,
  defineFunction,
  type FunctionBody,
  type FunctionOptions,
  RunCanceled,
  RunFailed,
  RunInterrupted,
} from './author/function.ts'
export { attributeFailure } from './runtime/run/failures.ts'
export type { RunRetryOptions } from './runtime/run/retry.ts'
export { runFunction, type RunOptions, type RunOutcome, type StartedRun, startRun } from './runtime/run/run-function.ts'
export { SecretRedactor } from './runtime/run/secret-redactor.ts'
export { httpRunBackend, type HttpRunBackendOptions } from './runtime/http/http-run-backend.ts'
export { executeFunction, type ExecuteOptions } from './runtime/command/execute-function.ts'
export type { ProcessTimes } from './runtime/command/run-process.ts'
export { testFunction, type TestedRun, type TestFunctionOptions } from './testing/test-function.ts'
export type { TestArtifact, TestVersion } from './testing/memory-run-backend.ts'
export type { Client } from '../client/client.ts'
export type { DagObject } from '../client/common/types.ts'
