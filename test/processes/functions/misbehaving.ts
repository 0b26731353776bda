import { setTimeout as wait } from 'node:timers/promises'
import { type AutomationFunction, defineInputs, executeFunction, secret, select } from '../../../src/automation/index.ts'

/** A function that is started as a process of its own, and does what its input says. */
class Inputs extends defineInputs({
  what: select(['succeed', 'fail', 'throw', 'timer', 'rejection', 'forever', 'obey', 'ignore', 'leave-open', 'print']),
  key: secret({ required: false }),
}) {}

export const misbehaving: AutomationFunction = executeFunction(async (context, { what, key }) => {
  context.attachInfoToObjects('before', ['an-object'], 'said before the end')
  switch (what) {
    case 'succeed':
      return context.markRunSuccess('all is well')
    case 'fail':
      return context.markRunFailed('a rule is broken')
    case 'throw':
      throw new Error('thrown by the function')
    case 'timer':
      setTimeout(() => {
        throw new Error('thrown in a timer')
      }, 1)
      await wait(60_000, undefined, { signal: context.signal })
      return
    case 'rejection':
      void Promise.reject(new Error('rejected, and nobody listens'))
      await wait(60_000, undefined, { signal: context.signal })
      return
    case 'forever':
      return new Promise<void>(() => undefined)
    case 'obey':
      context.progress(0.5, 'waiting to be stopped')
      await wait(60_000, undefined, { signal: context.signal })
      return
    case 'ignore':
      context.progress(0.5, 'waiting to be stopped')
      await wait(60_000)
      return
    case 'leave-open':
      setInterval(() => undefined, 1_000)
      return context.markRunSuccess('a timer is still there')
    case 'print':
      context.log.info(`the key is ${key?.reveal()}`, { key: key?.reveal() })
      throw new Error(`no access with ${key?.reveal()}`)
  }
}, Inputs, { name: 'misbehaving', graceMs: 300, leaseIntervalMs: 100, deliverMs: 1_500 })
