import type { Logger } from '../logger.ts'

/**
 * specklepy's `ServerTransport` takes everything but 201 for a failed upload. It sends no name of its own: it is the
 * client of Python's `requests` that wants lines in return for an upload.
 */
function insistsOnCreated(headers: Pick<Headers, 'get'>): boolean {
  const client = headers.get('user-agent') ?? ''
  return (
    /^specklepy\b/i.test(client) || (client.startsWith('python-requests/') && headers.get('accept') === 'text/plain')
  )
}

/** Tells the operator, once for a service, that a client takes the 200 of its upload for a failure. */
export function uploadStatusHint(
  status: 200 | 201,
  logger: Logger | undefined,
): (headers: Pick<Headers, 'get'>) => void {
  let isTold = status === 201
  return (headers) => {
    if (isTold || !insistsOnCreated(headers)) return
    isTold = true
    const client = headers.get('user-agent')
    logger?.warn?.(
      { client },
      "an upload of specklepy was stored and answered with 200, which specklepy takes for a failure; answer 201 with --upload-status 201, or with the service's option uploadStatus",
    )
  }
}
