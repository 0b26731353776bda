import type { Resource } from '../../http/router.ts'
import { artifactResources } from './artifacts.ts'
import { automationResourcesOf } from './automations.ts'
import type { HttpDeps } from './deps.ts'
import { eventResources } from './events.ts'
import { functionResources } from './functions.ts'
import { keepingResources } from './keeping.ts'
import { modelResources } from './models.ts'
import { ownRunResources } from './own-run.ts'
import { runResources } from './runs.ts'
import { upkeepResources } from './upkeep.ts'

/** Every path of automation. */
export function automationResources<H>(deps: HttpDeps<H>): readonly Resource<H>[] {
  return [
    ...modelResources(deps),
    ...functionResources(deps),
    ...automationResourcesOf(deps),
    ...runResources(deps),
    ...eventResources(deps),
    ...ownRunResources(deps),
    ...artifactResources(deps),
    ...keepingResources(deps),
    ...upkeepResources(deps),
  ]
}
