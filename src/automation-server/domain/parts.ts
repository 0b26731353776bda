import type { ServiceContext } from '../../service/extension.ts'
import type { AutomationLimits, RunTimes } from './options.ts'
import type { AutomationStore } from '../records/store.ts'
import type { FunctionRegistry } from './functions.ts'
import type { RunSignals } from './run-signals.ts'
import type { SecretBox } from './secrets.ts'

/** The parts that the whole domain works with. */
export interface DomainParts {
  readonly store: AutomationStore
  readonly graphs: ServiceContext<never>['graphs']
  readonly functions: FunctionRegistry
  readonly secrets: SecretBox
  readonly signals: RunSignals
  readonly limits: AutomationLimits
  readonly times: RunTimes
}
