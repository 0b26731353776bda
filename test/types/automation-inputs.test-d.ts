import { expectAssignable, expectError, expectNotAssignable, expectType } from 'tsd'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import { object, optional, string as valibotString } from 'valibot'
import { z } from 'zod'
import {
  boolean,
  defineInputs,
  type InferInputs,
  type InputsClass,
  type InputsIssue,
  InputsError,
  type InputsSource,
  integer,
  number,
  type Secret,
  secret,
  select,
  text,
} from 'stowage/automation'
import {
  fromFormValues,
  type InputsDescription,
  inputsParser,
  type InputsSchema,
  type InputValues,
  readInputsSchema,
  resolveInputs,
} from 'stowage/automation/runtime'

// A list, an enum of texts or of numbers, and an object: labels are names, and the function gets the values.
declare enum Unit {
  Millimetres = 'mm',
  Metres = 'm',
}
declare enum Level {
  Low = 0,
  High = 5,
}
class Choices extends defineInputs({
  unit: select(Unit),
  level: select(Level, { default: Level.High }),
  optional: select(Unit, { required: false }),
  rate: select([1, 2.5]),
  labelled: select({ 'Every day': 1, 'Every week': 7 }, { default: 7 }),
}) {}
const choices = Choices.parse({})
expectAssignable<Unit>(choices.unit)
expectAssignable<typeof choices.unit>(Unit.Metres)
expectNotAssignable<typeof choices.unit>('m')
expectAssignable<Level>(choices.level)
expectAssignable<typeof choices.level>(Level.Low)
expectNotAssignable<typeof choices.level>('Low')
expectAssignable<Unit | undefined>(choices.optional)
expectAssignable<typeof choices.optional>(undefined)
expectType<1 | 2.5>(choices.rate)
expectType<1 | 7>(choices.labelled)
new Choices({ unit: Unit.Metres, rate: 2.5 })
expectError(new Choices({ unit: 'Metres', rate: 2.5 }))
expectError(new Choices({ unit: Unit.Metres, rate: 3 }))
expectError(select(Unit, { default: 'Metres' }))
expectError(select(Unit, { default: Level.Low }))
expectError(select(Level, { default: 'Low' }))
expectError(select({ Low: true }))

class Inputs extends defineInputs({
  projectName: text({
    title: 'Project name',
    description: 'As in the contract',
    minLength: 1,
    maxLength: 100,
    pattern: /^[A-Z]+$/,
  }),
  tolerance: number({ default: 10, gt: 0, lt: 100 }),
  count: integer({ gte: 1, lte: 10, required: false }),
  includeAll: boolean({ default: false }),
  analysis: select({ Structural: 'structural', Thermal: 'thermal' }, { default: 'structural' }),
  unit: select(['mm', 'm'], { required: false }),
  apiKey: secret({ title: 'API key' }),
  otherKey: secret({ required: false, minLength: 8 }),
  bare: text(),
}) {}

// One name is the type and the value.
const inputs: Inputs = Inputs.parse({})
expectType<string>(inputs.projectName)
expectType<number>(inputs.tolerance)
expectType<number | undefined>(inputs.count)
expectType<boolean>(inputs.includeAll)
expectType<'structural' | 'thermal'>(inputs.analysis)
expectType<'mm' | 'm' | undefined>(inputs.unit)
expectType<Secret>(inputs.apiKey)
expectType<Secret | undefined>(inputs.otherKey)
expectType<string>(inputs.apiKey.reveal())
expectType<string>(inputs.bare)
expectType<InputsSchema>(Inputs.toJSONSchema())
expectType<InputsDescription>(Inputs.description)
expectError((inputs.tolerance = 5))
expectError(inputs.unknown)
expectNotAssignable<string>(inputs.apiKey)

// Values given in code: what has a default or is optional may be left out; secrets are texts.
new Inputs({ projectName: 'A', apiKey: 'k', bare: '' })
new Inputs({ projectName: 'A', apiKey: 'k', bare: '', tolerance: 5, analysis: 'thermal', count: undefined })
expectError(new Inputs({ projectName: 'A', apiKey: 'k' }))
expectError(new Inputs({ projectName: 'A', apiKey: 'k', bare: '', analysis: 'acoustic' }))
expectError(new Inputs({ projectName: 'A', apiKey: 'k', bare: '', tolerance: '5' }))
expectError(new Inputs({ projectName: 'A', apiKey: 'k', bare: '', extra: 1 }))

// Options belong to their kind.
expectError(number({ minLength: 1 }))
expectError(integer({ pattern: /x/ }))
expectError(text({ gt: 1 }))
expectError(boolean({ lt: 1 }))
expectError(text({ lable: 'Name' }))
expectError(select(['a'], { minLength: 1 }))
expectError(secret({ default: 'x' }))
expectError(text({ minLength: '1' }))
expectError(text({ pattern: 5 }))
expectError(text({ title: 5 }))
expectError(text({ required: 'no' }))

// Defaults are of the kind, or one of the choices.
expectError(text({ default: 5 }))
expectError(number({ default: '5' }))
expectError(integer({ default: true }))
expectError(boolean({ default: 'true' }))
expectError(select(['a', 'b'], { default: 'c' }))
expectError(select({ A: 'a' }, { default: 'A' }))
expectError(select([1, 2], { default: 3 }))
expectError(select([true]))
expectError(select())
expectError(defineInputs({ name: 'text' }))
expectError(defineInputs({ name: text() }, { colour: 'red' }))

// What takes a class takes schemas of other libraries, and knows what the function gets.
declare function execute<Source extends InputsSource>(run: (inputs: InferInputs<Source>) => void, source: Source): void
execute((given) => expectType<Inputs>(given), Inputs)
const zodInputs = z.object({
  name: z.string(),
  count: z.int().optional(),
  tags: z.string().transform((tags) => tags.split(',')),
})
execute((given) => expectType<{ name: string; count?: number | undefined; tags: string[] }>(given), zodInputs)
execute((given) => expectType<{ name: string; size?: number }>(given), type({ name: 'string', 'size?': 'number' }))
execute(
  (given) => expectType<{ name: string; note?: string | undefined }>(given),
  toStandardJsonSchema(object({ name: valibotString(), note: optional(valibotString()) })),
)
expectType<Promise<Inputs>>(resolveInputs(Inputs).parse({}))
expectType<readonly string[]>(resolveInputs(Inputs).secretTexts({}))
expectAssignable<InputsSource>(Inputs)
expectAssignable<InputsClass<Inputs>>(Inputs)
expectNotAssignable<InputsSource>(object({ name: valibotString() }))
expectNotAssignable<InputsSource>(class {})
expectNotAssignable<InputsSource>(z.string())

// From a schema alone.
const description = readInputsSchema({})
expectType<InputsDescription>(description)
expectType<InputValues>(inputsParser(description)({}))
expectType<Readonly<Record<string, unknown>>>(fromFormValues(description, new URLSearchParams()).json)
expectType<readonly InputsIssue[]>(new InputsError('invalid_inputs', []).issues)
