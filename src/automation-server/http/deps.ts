import type { ServiceContext } from '../../extension.ts'
import type { Domain } from '../domain/domain.ts'
import type { AutomationLimits } from '../options.ts'

export interface HttpDeps<H> {
  readonly domain: Domain
  readonly context: Pick<ServiceContext<H>, 'guard'>
  readonly limits: AutomationLimits
}
