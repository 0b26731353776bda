import { planModel, type PlannedVersion } from '../../../src/simulation/models.ts'
import type { Random } from '../../../src/simulation/random.ts'
import { BRANCHER, CHECKER } from './functions.ts'
import type { Act, AutomationOperation } from './operations.ts'
import { planAutomationStory, type StoryAct } from './stories.ts'

const DRAWS = 1_000
/** The share of runs of several servers that tell a story, and of these in which nothing else goes wrong. */
const STORY_SHARE = 0.04
const UNDISTURBED_SHARE = 0.7
const SOON_COUNT = 4
const SOON_MS = 600
/** A run that was started so long ago has often not reported anything yet. */
const UNREPORTED_MS = 700

/** The acts of one run. */
interface AutomationPlan {
  readonly operations: readonly AutomationOperation[]
  /** Nothing goes wrong but what the acts themselves bring about. */
  readonly isUndisturbed: boolean
}

/**
 * What clients and operators do in one run: a story by itself, or first models and automations, then everything in any
 * order.
 */
export function planAutomation(random: Random, servers: number): AutomationPlan {
  const story = random.fork('story')
  if (servers > 1 && story.chance(STORY_SHARE))
    return { operations: timed(planAutomationStory(story)), isUndisturbed: story.chance(UNDISTURBED_SHARE) }
  return { operations: planAnything(random, servers), isUndisturbed: false }
}

/** Each act in its time. */
function timed(acts: readonly StoryAct[]): readonly AutomationOperation[] {
  let atMs = 0
  return acts.map(({ act, server, gapMs }, index) => {
    atMs += gapMs
    return { ...act, index, atMs, server }
  })
}

function planAnything(random: Random, servers: number): readonly AutomationOperation[] {
  const contents = planModel(random.fork('contents'), 'p', 'v').versions
  const acts: Act[] = [{ kind: 'model' }]
  if (random.chance(0.4)) acts.push({ kind: 'model' })
  for (let left = random.between(1, 3); left > 0; left--) acts.push(automationAct(random))
  const length = random.between(6, 24)
  for (let left = length; left > 0; left--) acts.push(...someActs(random, contents))
  const everyMs = random.pick([10, 200, 2_000, 12_000])
  let [atMs, server] = [0, 0]
  return acts.map((act, index) => {
    const isSleep = act.kind === 'sleep'
    // Models and automations are there before everything else, mostly.
    atMs += random.below(isSleep ? UNREPORTED_MS : index < SOON_COUNT ? SOON_MS : everyMs * 2)
    if (!isSleep) server = random.below(servers)
    return { ...act, index, atMs, server }
  })
}

function automationAct(random: Random): Act {
  return { kind: 'automation', draw: random.below(DRAWS), functionId: random.pick([CHECKER, CHECKER, BRANCHER]) }
}

function someActs(random: Random, contents: readonly PlannedVersion[]): Act[] {
  const draw = random.below(DRAWS)
  const drawn = random.below(100)
  if (drawn < 30) return [{ kind: 'version', draw, content: random.pick(contents) }]
  if (drawn < 40) return [{ kind: 'start', draw }]
  if (drawn < 47) return [{ kind: 'cancel', draw }]
  if (drawn < 54) return [{ kind: 'list' }]
  if (drawn < 60) return [{ kind: 'read', draw }]
  if (drawn < 72) return deletion(random, draw)
  if (drawn < 76) return [{ kind: 'age', epochs: random.between(1, 4) }]
  if (drawn < 82) return collection(random)
  if (drawn < 85) return [{ kind: 'compact' }]
  if (drawn < 90) return [{ kind: 'crash' }]
  if (drawn < 94) return [{ kind: 'restart' }]
  if (drawn < 97) return [automationAct(random)]
  if (drawn < 99)
    return [
      { kind: 'start', draw },
      { kind: 'sleep', durationMs: random.between(7_000, 16_000) },
    ]
  return [{ kind: 'wait' }]
}

/** Deleted, and often restored; sometimes so late that it may be gone. */
function deletion(random: Random, draw: number): Act[] {
  const what = random.pick(['version', 'version', 'model'] as const)
  const acts: Act[] = [{ kind: 'delete', draw, what }]
  if (random.chance(0.4)) acts.push({ kind: 'age', epochs: random.between(1, 2) })
  if (random.chance(0.3)) acts.push(...collection(random))
  if (random.chance(0.6)) acts.push({ kind: 'restore', draw, what })
  if (random.chance(0.4)) acts.push({ kind: 'age', epochs: random.between(1, 4) }, { kind: 'wait' }, { kind: 'list' })
  return acts
}

function collection(random: Random): Act[] {
  const [graceEpochs, undoEpochs] = [random.between(1, 2), 1]
  const collect = { kind: 'collect', graceEpochs, undoEpochs } as const
  return [{ kind: 'age', epochs: graceEpochs + 1 }, collect, { kind: 'age', epochs: undoEpochs + 1 }, collect]
}
