import type { Project } from '../../src/client/index.ts'
import { type KillableServer, ServerKilledError } from './kill-rounds.ts'
import { isGone, type PinnedModels } from './pinned-models.ts'

/** What the server does beside serving. */
export type Upkeep = 'collection' | 'compaction'

/**
 * Uploads and upkeep go on side by side until the server dies, so many changes of its storage after the upkeep began.
 * Then it is started again. Throws whatever failed for another reason.
 */
export async function workUntilItDies(
  server: KillableServer,
  models: PinnedModels,
  project: Project,
  { upkeep, changes }: { readonly upkeep: Upkeep; readonly changes: number },
): Promise<void> {
  let step: Promise<void> = Promise.resolve()
  const uploads = async (): Promise<void> => {
    for (;;) {
      step = models.step(project)
      await step
    }
  }
  const upkeeps = async (): Promise<void> => {
    for (let passes = 0; ; passes++) {
      for (let epochs = 0; epochs < 2; epochs++) {
        await server.call('advanceEpochs', 1)
        // The grace is one epoch, and an upload with its pin may not take longer.
        await step
      }
      const dies = (by: Upkeep): Promise<void> =>
        passes === 0 && by === upkeep ? server.call('dieAfter', changes) : Promise.resolve()
      await dies('collection')
      await server.call('collect', project.id)
      await dies('compaction')
      if (upkeep === 'compaction') await server.call('compact', project.id, { all: true })
    }
  }
  const outcomes = await Promise.allSettled([uploads(), upkeeps(), server.died()])
  for (const outcome of outcomes) {
    if (outcome.status === 'fulfilled') continue
    const error: unknown = outcome.reason
    if (!(error instanceof ServerKilledError) && !isGone(error)) throw error
  }
  await server.start()
}
