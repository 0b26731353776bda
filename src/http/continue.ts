import type { Server, ServerResponse } from 'node:http'
import { AWAITS_CONTINUE, type NodeRequest } from './node-body.ts'
import type { Route } from './object-routes.ts'
import { matchesPathEnd } from './router.ts'
import { splitTarget } from './target.ts'

/**
 * Lets uploads with `Expect: 100-continue` (RFC 9110 section 10.1.1) be refused before they are sent. Node alone
 * answers `100 Continue` before any code has seen the request. With this function, it is sent when the body is first
 * read, wherever below the server the service is mounted. Other requests are continued at once, as without it. Call it
 * once for a server.
 */
export function continueOnExpect(server: Server, service: { readonly endpoints: { readonly upload: Route } }): void {
  const { method, path } = service.endpoints.upload
  server.on('checkContinue', (req: NodeRequest, res: ServerResponse) => {
    if (req.method === method && matchesPathEnd(splitTarget(req.url ?? '/').path, path)) continueWhenRead(req, res)
    else res.writeContinue()
    server.emit('request', req, res)
  })
}

/** A consumer that wants a body listens for it: this is how Node's streams begin to flow. */
function continueWhenRead(req: NodeRequest, res: ServerResponse): void {
  req[AWAITS_CONTINUE] = true
  const onListener = (event: string | symbol): void => {
    if (event !== 'data' && event !== 'readable') return
    req.off('newListener', onListener)
    req[AWAITS_CONTINUE] = false
    if (!res.headersSent) res.writeContinue()
  }
  req.on('newListener', onListener)
}
