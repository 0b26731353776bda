import { type PlannedVersion, plannedObject } from '../../../src/simulation/models.ts'
import type { Random } from '../../../src/simulation/random.ts'
import type { Act } from './operations.ts'

/** An act, the server that is asked, and how long after the act before it. */
export interface StoryAct {
  readonly act: Act
  readonly server: number
  readonly gapMs: number
}

const SECOND_MS = 1_000
/** An act has ended by then, unless one of its calls is held back. */
const ENDED_MS = 3 * SECOND_MS
/** The other server has done everything else by then. */
const HOLD_MS = 20 * SECOND_MS
/** Objects of so many epochs are young, and condemned ones of so many epochs are not freed yet. */
const GRACE_EPOCHS = 1
const AGE = { kind: 'age', epochs: GRACE_EPOCHS + 1 } as const
const COLLECT = { kind: 'collect', graceEpochs: GRACE_EPOCHS, undoEpochs: GRACE_EPOCHS } as const
/** One server creates a version of objects that the other one collects. */
const MAKER = 0
const COLLECTOR = 1

function contentOf(name: string): PlannedVersion {
  const leaf = plannedObject(`${name}-leaf`, { text: 'leaf' })
  const root = plannedObject(`${name}-root`, { text: 'root', children: [leaf.id] })
  return { rootId: root.id, objects: [leaf, root] }
}

/** A project with one version, so that it is collected, and an upload to which nothing leads. */
function begun(late: PlannedVersion): readonly Act[] {
  return [
    { kind: 'model' },
    { kind: 'version', draw: 0, content: contentOf('kept') },
    { kind: 'upload', content: late },
    AGE,
  ]
}

function told(server: number, ...acts: readonly Act[]): StoryAct[] {
  return acts.map((act) => ({ act, server, gapMs: ENDED_MS }))
}

/** A version is about to be committed when its objects are condemned, and then freed. */
function freedBeforeCommit(): StoryAct[] {
  const late = contentOf('late')
  const hold = { call: 'commit x', nth: 1, durationMs: HOLD_MS }
  return [
    ...told(COLLECTOR, ...begun(late)),
    ...told(MAKER, { kind: 'version', draw: 0, content: late, isThere: true, hold }),
    ...told(COLLECTOR, COLLECT, AGE, COLLECT),
  ]
}

/** Condemned objects are about to be freed when a version of them is created. */
function createdWhileFreed(): StoryAct[] {
  const late = contentOf('late')
  // The commit that frees objects lowers the totals first.
  const hold = { call: 'commit t', nth: 1, durationMs: HOLD_MS }
  return [
    ...told(COLLECTOR, ...begun(late), COLLECT, AGE, { ...COLLECT, hold }),
    ...told(MAKER, { kind: 'version', draw: 0, content: late, isThere: true }),
  ]
}

const STORIES: readonly (() => StoryAct[])[] = [freedBeforeCommit, createdWhileFreed]

/** Acts of two servers in a fixed order that lead to one kind of trouble. */
export function planAutomationStory(random: Random): readonly StoryAct[] {
  return random.pick(STORIES)()
}
