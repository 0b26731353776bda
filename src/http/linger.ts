/** A client that is still sending when it is answered gets this long to stop. */
export const LINGER_MS_MAX = 9_000
/** A client that has sent nothing for this long has stopped. */
export const LINGER_IDLE_MS = 1_000
/** Time for an answer to get out before the connection that it leaves on may be cut. */
export const CLOSE_DELAY_MS = 500
/**
 * A body that ends within these bounds is read before the request is refused, so the connection stays open. Proxies pass
 * on the head of a request before its body, and Caddy cuts a response that comes in between.
 */
export const SHORT_REST = { bytesMax: 65_536, msMax: 1_000 } as const
/** Framing around the largest body that is still read to its end. */
const LINGER_SLACK_BYTES = 65_536

/** The most that is read of a body, whatever it turned out to be. */
export function drainedBytesMax(requestBytesMax: number): number {
  return 2 * requestBytesMax + LINGER_SLACK_BYTES
}
