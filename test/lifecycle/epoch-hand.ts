import type { ServiceExtension } from '../../src/index.ts'
import type { EpochCounter } from '../../src/store/upkeep/epochs.ts'

/** Moves the epochs of a service on. Real ones take ten minutes each. */
export interface EpochHand {
  /** To be passed among the extensions of the service. */
  readonly extension: ServiceExtension
  /** Begins the next epoch, so many times. Resolves to the epoch in the end. */
  readonly advance: (count: number) => Promise<number>
}

export function epochHand(): EpochHand {
  let counter: EpochCounter | undefined
  return {
    extension: {
      attach: ({ epochs }) => {
        counter = epochs as EpochCounter | undefined
        return []
      },
    },
    advance: async (count) => {
      if (counter === undefined) throw new Error('the service has no epochs')
      for (let done = 0; done < count; done++) await counter.advance()
      // The server looks again at once, rather than a little later.
      return (await counter.current()).number
    },
  }
}
