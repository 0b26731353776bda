import type { AnnotationLevel } from '../../automation/author/run-data.ts'
import type { Annotation, Page as Part, AnnotationFilter, Run } from '../../automation-server/schemas/types.ts'
import type { Urls } from './urls.ts'
import { cut, type Html } from './html.ts'
import { formatCount, Next } from './parts.tsx'

interface AnnotationsProps {
  readonly urls: Urls
  readonly projectId: string
  readonly run: Run
  readonly annotations: Part<Annotation>
  readonly filter: AnnotationFilter
}

/** The worst first. */
const LEVELS: readonly AnnotationLevel[] = ['ERROR', 'WARNING', 'INFO', 'SUCCESS']
const LEVEL_WORDS: { readonly [L in AnnotationLevel]: readonly [one: string, many: string] } = {
  ERROR: ['Error', 'Errors'],
  WARNING: ['Warning', 'Warnings'],
  INFO: ['Note', 'Notes'],
  SUCCESS: ['Success', 'Successes'],
}
const IDS_SHOWN_MAX = 100
const METADATA_CHARACTERS_MAX = 4_000

/** The annotations of the function: by category, then by level, a part of the list at a time. */
export function Annotations(props: AnnotationsProps): Html {
  const { urls, projectId, run, annotations, filter } = props
  const { level, category, objectId, cursor } = filter
  const isFiltered = level !== undefined || category !== undefined || objectId !== undefined || cursor !== undefined
  const next =
    annotations.cursor === null
      ? undefined
      : `${urls.run(projectId, run.id, { level, category, objectId, cursor: annotations.cursor })}#annotations`
  return (
    <>
      <LevelLinks {...props} />
      {isFiltered ? (
        <p>
          <Shown filter={filter} /> <a href={`${urls.run(projectId, run.id)}#annotations`}>All annotations</a>
        </p>
      ) : null}
      {annotations.items.length === 0 ? <p class="empty">{emptyWords(run, isFiltered)}</p> : <Groups {...props} />}
      <Next href={next} what="annotations" />
    </>
  )
}

function emptyWords({ expired }: Run, isFiltered: boolean): string {
  if (expired.includes('annotations')) return 'The annotations were removed at the end of their retention period.'
  return isFiltered ? 'No annotations match.' : 'No annotations.'
}

function LevelLinks({ urls, projectId, run, filter }: AnnotationsProps): Html | null {
  const present = LEVELS.filter((level) => run.annotations[level] > 0)
  if (present.length === 0) return null
  return (
    <ul class="levels" aria-label="Levels">
      {present.map((level) => (
        <li>
          <a
            class={`level-link ${level.toLowerCase()}`}
            href={`${urls.run(projectId, run.id, { level })}#annotations`}
            aria-current={filter.level === level ? 'true' : undefined}
          >
            {formatCount(run.annotations[level], ...LEVEL_WORDS[level])}
          </a>
        </li>
      ))}
    </ul>
  )
}

function Shown({ filter: { level, category, objectId } }: Pick<AnnotationsProps, 'filter'>): Html {
  const words = [
    level === undefined ? '' : LEVEL_WORDS[level][1].toLowerCase(),
    category === undefined ? '' : `category “${category}”`,
    objectId === undefined ? '' : `object ${objectId}`,
  ].filter((word) => word !== '')
  return (
    <span>
      {words.length === 0 ? (
        'Further annotations are shown.'
      ) : (
        <>
          Shown: <bdi>{words.join(', ')}</bdi>.
        </>
      )}
    </span>
  )
}

function Groups({ urls, projectId, run, annotations, filter }: AnnotationsProps): Html {
  const isPart = filter.cursor !== undefined || annotations.cursor !== null
  const categories = new Map<string, Annotation[]>()
  for (const result of annotations.items)
    categories.set(result.category, [...(categories.get(result.category) ?? []), result])
  return (
    <>
      {[...categories].map(([category, items], at) => (
        <section class="category" aria-labelledby={`category-${at}`}>
          <h3 id={`category-${at}`}>
            <a href={`${urls.run(projectId, run.id, { category })}#annotations`}>
              <bdi>{category}</bdi>
            </a>
          </h3>
          {LEVELS.map((level) => (
            <Level
              level={level}
              items={items.filter((item) => item.level === level)}
              isPart={isPart}
              prefix={`objects-${at}-${level}`}
            />
          ))}
        </section>
      ))}
    </>
  )
}

interface LevelProps {
  readonly level: AnnotationLevel
  readonly items: readonly Annotation[]
  /** Whether other pages have more of them. */
  readonly isPart: boolean
  readonly prefix: string
}

/** It is annotations that are formatCount, as in the links to levels, and then the objects that they name. */
function Level({ level, items, isPart, prefix }: LevelProps): Html | null {
  if (items.length === 0) return null
  const objects = new Set(items.flatMap(({ objectAppIds }) => Object.keys(objectAppIds)))
  return (
    <>
      <h4 class={`level ${level.toLowerCase()}`}>
        {formatCount(items.length, ...LEVEL_WORDS[level])}
        {objects.size === 0 && !isPart ? null : (
          <span class="quiet">
            {objects.size === 0 ? '' : ` on ${formatCount(objects.size, 'object')}`}
            {isPart ? ' in this part of the list' : ''}
          </span>
        )}
      </h4>
      <ul class="annotations">
        {sayingTheSame(items).map(({ item, times }, at) => (
          <li class={level.toLowerCase()}>
            <AnnotationItem item={item} times={times} id={`${prefix}-${at}`} />
          </li>
        ))}
      </ul>
    </>
  )
}

interface Said {
  readonly item: Annotation
  /** The number of annotations with this text. */
  readonly times: number
}

/** Functions that go through a model in parts say the same thing of some objects at a time: people read it once. */
function sayingTheSame(items: readonly Annotation[]): readonly Said[] {
  const byWords = new Map<string, Said>()
  for (const item of items) {
    const words = JSON.stringify([item.message, item.metadata])
    const said = byWords.get(words)
    byWords.set(
      words,
      said === undefined
        ? { item, times: 1 }
        : {
            item: { ...item, objectAppIds: { ...said.item.objectAppIds, ...item.objectAppIds } },
            times: said.times + 1,
          },
    )
  }
  return [...byWords.values()]
}

function AnnotationItem({
  item: { message, objectAppIds, metadata },
  times,
  id,
}: Said & { readonly id: string }): Html {
  const objects = Object.entries(objectAppIds)
  const together = times === 1 ? '' : `, in ${formatCount(times, 'annotation')}`
  return (
    <>
      {message === null ? null : (
        <p class="lines">
          <bdi>{message}</bdi>
        </p>
      )}
      {objects.length === 0 && times > 1 ? <p class="quiet">{`In ${formatCount(times, 'annotation')}`}</p> : null}
      {objects.length === 0 ? null : (
        <details id={id}>
          <summary>{`${formatCount(objects.length, 'object')}${together}`}</summary>
          <ul class="ids">
            {objects.slice(0, IDS_SHOWN_MAX).map(([objectId, applicationId]) => (
              <li>
                <code>
                  <bdi>{objectId}</bdi>
                </code>
                {applicationId === null ? null : (
                  <span class="quiet">
                    {' '}
                    (<bdi>{applicationId}</bdi>)
                  </span>
                )}
              </li>
            ))}
          </ul>
          {objects.length > IDS_SHOWN_MAX ? (
            <p class="quiet">{`and ${formatCount(objects.length - IDS_SHOWN_MAX, 'more', 'more')}, in the API`}</p>
          ) : null}
        </details>
      )}
      {metadata === null ? null : (
        <details id={`${id}-more`}>
          <summary>Details</summary>
          <pre>
            <bdi>{cut(JSON.stringify(metadata, null, 2), METADATA_CHARACTERS_MAX)}</bdi>
          </pre>
        </details>
      )}
    </>
  )
}
