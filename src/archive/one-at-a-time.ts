import { takePlace } from '../data-folder/exclusive-place.ts'
import { StowageError } from '../errors.ts'
import { quotedPath } from '../object/id.ts'

/** Does the work while no other process works in the same place. Throws `conflict`, which names the other process. */
export async function oneAtATime<T>(place: string, what: string, work: () => Promise<T>): Promise<T> {
  const taken = await takePlace(place)
  if (!('release' in taken)) {
    const { holder, file } = taken
    const who = holder && `process ${holder.pid} on ${holder.host} (since ${holder.openedAt})`
    throw new StowageError(
      'conflict',
      `${who ?? 'another process'} is making ${what}; wait until it ends. If no such process runs, remove ${quotedPath(file)}`,
    )
  }
  try {
    return await work()
  } finally {
    await taken.release()
  }
}
