import { createObjectService, type ObjectService, openAccess } from 'stowage'
import { memoryBackend } from 'stowage/memory'

/** Without a port: a host's own tests, or any host that speaks in `Request` and `Response`. */
export const service: ObjectService = createObjectService({ backend: memoryBackend(), access: openAccess() })

const headers = { 'Content-Type': 'application/json' }
await service.fetch(
  new Request('http://in.process/objects/demo', { method: 'POST', headers, body: '[{"id":"a","text":"kept"}]' }),
)

export const kept: string = await (await service.fetch(new Request('http://in.process/objects/demo/a/single'))).text()
await service.close()
