import type { Server, ServerResponse } from 'node:http'
import { AWAITS_CONTINUE, type NodeRequest } from './node-body.ts'
import type { Route } from './object-routes.ts'
import { endsLike } from './router.ts'
import { splitTarget } from './target.ts'

/**
 * Lets uploads that come with `Expect: 100-continue` (RFC 9110 section 10.1.1) be refused before they are sent. By itself Node answers `100 Continue`
 * before anybody has looked at the request; with this, it is sent when somebody begins to read the body, wherever below the server the service is mounted.
 * Other requests are continued at once, as without it. To be called once for a server.
 */
export function continueOnExpect(server: Server, service: { readonly endpoints: { readonly upload: Route } }): void {
  const { method, path } = service.endpoints.upload
  server.on('checkContinue', (req: NodeRequest, res: ServerResponse) => {
    if (req.method === method && endsLike(splitTarget(req.url ?? '/').path, path)) continueWhenRead(req, res)
    else res.writeContinue()
    server.emit('request', req, res)
  })
}

/** Whoever wants a body listens for it: this is how Node's streams begin to flow. */
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
