import type { EventDispatcher } from '../events/event-dispatcher.ts'
import type { PinStore } from '../object/roots.ts'

/** The same pins, with an event for each that is added or removed. */
export function toldPins(pins: PinStore, events: Pick<EventDispatcher, 'emit'>): PinStore {
  const tell = (projectId: string, action: 'added' | 'removed', id: string): void =>
    events.emit('pin', () => ({ projectId, action, id }))
  return {
    list: (projectId) => pins.list(projectId),
    add: async (projectId, wanted) => {
      const pin = await pins.add(projectId, wanted)
      tell(projectId, 'added', pin.id)
      return pin
    },
    take: async (projectId, pin) => {
      const isNew = await pins.take(projectId, pin)
      if (isNew) tell(projectId, 'added', pin.id)
      return isNew
    },
    remove: async (projectId, pinId) => {
      await pins.remove(projectId, pinId)
      tell(projectId, 'removed', pinId)
    },
  }
}
