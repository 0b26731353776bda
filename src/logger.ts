/**
 * Where a service writes what its operator should know: first the fields, then the message, as pino's loggers and `console` take them.
 * `error`: something failed inside the server. `warn`: requests were refused for lack of memory or since the service closes, or objects came with another text
 * than the one that is held. `info` and `debug`: requests, with the option `requestLog`. Levels that are not there are not written.
 */
export interface Logger {
  error(fields: object, message: string): void
  warn?(fields: object, message: string): void
  info?(fields: object, message: string): void
  debug?(fields: object, message: string): void
}
