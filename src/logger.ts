/**
 * Receives the messages for the operator of a service: first the fields, then the message, as pino's loggers and
 * `console` take them. `error`: something failed inside the server. `warn`: requests were refused because memory is
 * short or the service is closing, or objects arrived with a text other than the stored one. `info` and `debug`:
 * requests, with the option `requestLog`. Missing levels are not written.
 */
export interface Logger {
  /** Called with the error as `err`, its code and the id of the request. */
  error(fields: object, message: string): void
  /** Refused requests, and objects that arrived with another text. */
  warn?(fields: object, message: string): void
  /** A line for each request, with `requestLog: 'info'`. */
  info?(fields: object, message: string): void
  /** A line for each request, with `requestLog: 'debug'`. */
  debug?(fields: object, message: string): void
}
