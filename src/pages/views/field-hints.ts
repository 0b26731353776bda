import type { InputField, NumberRules, TextRules } from '../../automation/author/inputs/description.ts'
import { formatCount } from './parts.tsx'

const PATTERN_SHOWN_MAX = 80

/** The rules of an input in words, shown before anybody breaks them. Empty without rules. */
export function describeRules(field: InputField): string {
  if (field.kind === 'text' || field.kind === 'secret') return sentences(lengthWords(field), patternWords(field))
  if (field.kind === 'number' || field.kind === 'integer')
    return sentences(`${field.kind === 'integer' ? 'A whole number' : 'A number'}${rangeWords(field)}`)
  return ''
}

function lengthWords({ minLength = 0, maxLength }: TextRules): string {
  const [least, most] = [formatCount(minLength, 'character'), formatCount(maxLength ?? 0, 'character')]
  if (maxLength !== undefined && minLength > 0)
    return minLength === maxLength ? most : `${minLength.toLocaleString('en')} to ${most}`
  if (maxLength !== undefined) return `${most} at most`
  return minLength > 1 ? `${least} at least` : ''
}

function patternWords({ pattern = '' }: TextRules): string {
  return pattern !== '' && pattern.length <= PATTERN_SHOWN_MAX ? `Matches the pattern ${pattern}` : ''
}

function rangeWords({ gt, gte, lt, lte }: NumberRules): string {
  if (gte !== undefined && lte !== undefined && gt === undefined && lt === undefined) return ` from ${gte} to ${lte}`
  const rules = [
    gt === undefined ? '' : `greater than ${gt}`,
    gte === undefined ? '' : `${gte} or more`,
    lt === undefined ? '' : `less than ${lt}`,
    lte === undefined ? '' : `${lte} or less`,
  ].filter((rule) => rule !== '')
  return rules.length === 0 ? '' : `, ${rules.join(' and ')}`
}

function sentences(...parts: readonly string[]): string {
  return parts
    .filter((part) => part !== '')
    .map((part) => `${part}.`)
    .join(' ')
}
