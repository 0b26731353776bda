import type { Model } from '../../automation-server/schemas/types.ts'
import type { Html } from './html.ts'
import { Field } from './field.tsx'
import { formatCount } from './parts.tsx'
import type { Urls } from './urls.ts'

/** The members of a rule, as they are typed. */
export interface RetentionValues {
  readonly keepLastCount: string
  readonly keepDailyDays: string
  readonly keepAllDays: string
}

/** A rule that was refused, as it was entered. */
export interface RefusedRetention {
  readonly values: RetentionValues
  readonly problem: string
}

interface RetentionProps {
  readonly urls: Urls
  readonly projectId: string
  readonly model: Model
  /** How many versions the rule would delete now. */
  readonly expired: { readonly count: number; readonly hasMore: boolean } | undefined
  readonly refused: RefusedRetention | undefined
  readonly mayWrite: boolean
}

const MEMBERS: readonly (readonly [name: keyof RetentionValues, label: string])[] = [
  ['keepLastCount', 'Newest versions'],
  ['keepDailyDays', 'Days for which the last version of each day is kept'],
  ['keepAllDays', 'Days for which every version is kept'],
]

/** How long the versions of a model are kept, and the form that changes it. */
export function Retention(props: RetentionProps): Html | null {
  const { model, expired, mayWrite } = props
  if (model.deletedAt !== null || (model.retention === null && !mayWrite)) return null
  return (
    <section aria-labelledby="retention">
      <h2 id="retention">Retention</h2>
      <p>
        {model.retention === null ? 'Every version is kept.' : retentionWords(model.retention)}{' '}
        {expired === undefined || expired.count === 0
          ? null
          : `The rule would delete ${formatCount(expired.count, 'version')}${expired.hasMore ? ' and more' : ''} now.`}
      </p>
      {mayWrite ? <RetentionForm {...props} /> : null}
    </section>
  )
}

/** The versions that a rule keeps, as a sentence. */
function retentionWords({ keepLastCount, keepDailyDays, keepAllDays }: NonNullable<Model['retention']>): string {
  const kept = [
    keepLastCount === undefined || keepLastCount === 1 ? 'the latest version' : `the last ${keepLastCount} versions`,
    ...(keepDailyDays === undefined ? [] : [`the last version of each day for ${formatCount(keepDailyDays, 'day')}`]),
    ...(keepAllDays === undefined ? [] : [`all versions for ${formatCount(keepAllDays, 'day')}`]),
  ]
  return `The rule keeps ${kept.join(', ')}, and versions that are pinned or marked as kept. Others are deleted once a day, and can be restored for some days.`
}

function RetentionForm({ urls, projectId, model, refused }: RetentionProps): Html {
  const { retention } = model
  const given = (name: keyof RetentionValues): string =>
    refused === undefined ? String(retention?.[name] ?? '') : refused.values[name]
  return (
    <details class="confirm" open={refused !== undefined}>
      <summary>Change the rule …</summary>
      <form method="post" action={urls.modelAction(projectId, model.id, 'retention')} class="narrow">
        <p class="quiet">A version stays if one of these keeps it. Leave all empty to keep every version.</p>
        {refused === undefined ? null : <p class="complaint">{refused.problem}</p>}
        {MEMBERS.map(([name, label]) => (
          <Field id={name} label={label}>
            {(aria) => (
              <input
                id={name}
                name={name}
                type="text"
                inputmode="numeric"
                autocomplete="off"
                value={given(name)}
                {...aria}
              />
            )}
          </Field>
        ))}
        <button type="submit">Save the rule</button>
      </form>
    </details>
  )
}
