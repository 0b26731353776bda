import type { FunctionDefinition, RunExecutor } from '../../src/automation-server/index.ts'
import { boolean, defineInputs, integer, number, secret, select, text } from '../../src/automation/index.ts'

/** One input of every kind, with every rule. */
export const EveryKind: FunctionDefinition['inputs'] = defineInputs(
  {
    owner: text({
      title: 'Project owner',
      description: 'Who is told about the result.',
      minLength: 2,
      maxLength: 20,
      pattern: /^[A-Z][a-z ]*$/,
    }),
    remark: text({ title: 'Remark', required: false, maxLength: 1_000 }),
    tolerance: number({ title: 'Tolerance', description: 'In millimetres.', default: 10, gt: 0, lt: 100 }),
    floors: integer({ title: 'Floors', gte: 1, lte: 5, required: false }),
    strict: boolean({ title: 'Be strict', description: 'Warnings count as errors.', default: true }),
    rounding: boolean({ title: 'Round lengths', required: false }),
    analysis: select({ 'Structural analysis': 'structural', 'Thermal analysis': 'thermal' }, { title: 'Analysis' }),
    unit: select(['mm', 'm'], { title: 'Unit', default: 'mm' }),
    apiKey: secret({ title: 'API key', minLength: 8 }),
    spareKey: secret({ title: 'Spare key', required: false }),
  },
  { title: 'What to check' },
)

export function everyKind(executor: RunExecutor, changes: Partial<FunctionDefinition> = {}): FunctionDefinition {
  return {
    id: 'checker',
    name: 'Checker',
    description: 'Checks a building against rules.',
    release: '1.0.0',
    inputs: EveryKind,
    executor,
    ...changes,
  }
}

/** What `EveryKind` takes, as the form sends it. */
export const RIGHT_FORM: Readonly<Record<string, string>> = {
  name: 'Nightly check',
  trigger: 'manual',
  enabled: 'true',
  'input.owner': 'Ada',
  'input.remark': '',
  'input.tolerance': '12.5',
  'input.floors': '3',
  'input.strict': 'true',
  'input.rounding': '',
  'input.analysis': 'thermal',
  'input.unit': 'm',
  'input.apiKey': 'correct horse',
  'input.spareKey': '',
}
