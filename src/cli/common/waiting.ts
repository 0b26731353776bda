import { formatDuration } from './format.ts'
import { printNote } from './output.ts'

/** Shorter waits are not told. */
const WAIT_UNTOLD_MS = 2_000

/** Where a note about a wait goes. */
export type TellWait = (note: string) => void

/** The same store. If its opening takes long, one note says what it waits for, and for how long at most. */
export function tellingWait<S extends { readonly place?: string; ready?(): Promise<void> }>(
  store: S,
  waitMsMax: number,
  tell: TellWait = printNote,
): S {
  const ready = store.ready?.bind(store)
  if (ready === undefined) return store
  const note = `no answer yet from ${store.place ?? 'the storage'}; waiting for up to ${formatDuration(waitMsMax)}`
  return Object.assign(store, {
    ready: async (): Promise<void> => {
      const timer = setTimeout(() => tell(note), WAIT_UNTOLD_MS)
      await ready().finally(() => clearTimeout(timer))
    },
  })
}
