/// <reference types="node" preserve="true" />

/**
 * Functions that run on the versions of a model.
 *
 * @module stowage/automation
 *
 * @example
 * import { type AutomationContext, defineFunction, defineInputs, number, RunFailed } from 'stowage/automation'
 *
 * class Inputs extends defineInputs({ heightMax: number({ title: 'Maximum height', gt: 0 }) }) {}
 *
 * async function checkHeights(context: AutomationContext, inputs: Inputs): Promise<void> {
 *   for await (const batch of context.objects()) {
 *     const tall = batch.filter(({ height }) => typeof height === 'number' && height > inputs.heightMax)
 *     if (tall.length > 0) context.attachErrorToObjects('Height', tall, `higher than ${inputs.heightMax}`)
 *   }
 *   if (context.status !== 'running') throw new RunFailed('the run has ended')
 *   context.markRunSuccess('all heights are checked')
 * }
 *
 * export const heightChecker = defineFunction(checkHeights, Inputs, { name: 'Height checker' })
 */

export type {
  Annotation,
  AnnotationLevel,
  AutomationRunData,
  JsonObject,
  JsonValue,
  RunStatus,
  VersionTrigger,
} from './author/run-data.ts'
export {
  boolean,
  type BooleanOptions,
  type ChoiceOf,
  type Choices,
  type CommonOptions,
  type DeclaredInput,
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
  type InputsOptions,
  type ValuesOf,
} from './author/inputs/define.ts'
export { InputsError, type InputsErrorBody, type InputsIssue } from './author/inputs/errors.ts'
export type { InferInputs, InputsSource, StandardInputs, StandardResult } from './author/inputs/resolve.ts'
export { Secret } from './author/inputs/secret.ts'
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
export { executeFunction, type ExecuteOptions } from './runtime/command/execute-function.ts'
export type { Client } from '../client/client.ts'
export type { DagObject } from '../client/common/types.ts'
