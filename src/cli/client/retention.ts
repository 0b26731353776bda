import { Option } from 'commander'
import type { Model } from '../../automation-server/index.ts'
import { formatCount } from '../common/format.ts'
import { positiveInteger } from '../common/options.ts'

type RetentionRule = NonNullable<Model['retention']>

/** The options of a retention rule, as commander hands them over. */
export interface RuleOptions {
  readonly keepLast?: number
  readonly keepDaily?: number
  readonly keepAll?: number
}

export function ruleOptions(): readonly Option[] {
  return [
    new Option('--keep-last <n>', 'keep this many of the newest').argParser(positiveInteger),
    new Option('--keep-daily <days>', "keep each day's last for this many days").argParser(positiveInteger),
    new Option('--keep-all <days>', 'keep all for this many days').argParser(positiveInteger),
  ]
}

/** The rule that the options describe; `undefined` if none of them was given. */
export function ruleOf({ keepLast, keepDaily, keepAll }: RuleOptions): RetentionRule | undefined {
  const rule = {
    ...(keepLast === undefined ? {} : { keepLastCount: keepLast }),
    ...(keepDaily === undefined ? {} : { keepDailyDays: keepDaily }),
    ...(keepAll === undefined ? {} : { keepAllDays: keepAll }),
  }
  return Object.keys(rule).length === 0 ? undefined : rule
}

/** What a rule keeps, as a sentence without its end. */
export function ruleWords(rule: Model['retention']): string {
  if (rule === null) return 'no rule: every version is kept'
  const { keepLastCount, keepDailyDays, keepAllDays } = rule
  const kept = [
    ...(keepLastCount === undefined ? [] : [`the last ${formatCount(keepLastCount, 'version')}`]),
    ...(keepDailyDays === undefined ? [] : [`each day's last version for ${formatCount(keepDailyDays, 'day')}`]),
    ...(keepAllDays === undefined ? [] : [`every version for ${formatCount(keepAllDays, 'day')}`]),
  ]
  return `keeps ${kept.join(', ')}`
}
