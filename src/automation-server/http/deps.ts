import type { ServiceContext } from '../../service/extension.ts'
import type { Domain } from '../domain/domain.ts'
import type { AutomationLimits } from '../domain/options.ts'

export interface HttpDeps<H> {
  readonly domain: Domain
  readonly context: Pick<
    ServiceContext<H>,
    'guard' | 'authorize' | 'pins' | 'usage' | 'holds' | 'upkeepOf' | 'epochs' | 'logger'
  >
  readonly limits: AutomationLimits
}
