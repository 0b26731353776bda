/**
 * Where a service writes what its operator should know: first the fields, then the message, as pino's loggers and `console` take them.
 * `error`: something failed inside the server. `warn`: requests were refused for lack of memory or since the service closes, or objects came with another text
 * than the one that is held. `info` and `debug`: requests, with the option `requestLog`. Levels that are not there are not written.
 */
export interface Logger {
  /** Called with the error as `err`, its code and the id of the request. */
  error(fields: object, message: string): void
  /** Requests that were refused, and objects that came with another text. */
  warn?(fields: object, message: string): void
  /** A line for each request, with `requestLog: 'info'`. */
  info?(fields: object, message: string): void
  /** A line for each request, with `requestLog: 'debug'`. */
  debug?(fields: object, message: string): void
}
