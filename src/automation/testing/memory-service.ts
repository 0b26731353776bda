import { memoryBackend } from '../../../adapters/memory/index.ts'
import { openAccess } from '../../access/open.ts'
import { type Client, createClient } from '../../client/client.ts'
import type { ObjectService } from '../../service/object-service.ts'
import { createObjectService } from '../../service/service.ts'

/** A service of its own in this process, without a port, and a client of it. */
export function memoryService(): { readonly service: ObjectService; readonly client: Client } {
  const service = createObjectService({ backend: memoryBackend(), access: openAccess() })
  const client = createClient({
    url: 'http://in.process',
    token: undefined,
    fetch: (url, init) => service.fetch(new Request(url, init)),
  })
  return { service, client }
}
