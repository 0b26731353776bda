/** Where a service writes what its operator should know. `console` is one, and so are pino's loggers. */
export interface Logger {
  /** Called with the error as `err`, its code and the id of the request. */
  error(fields: object, message: string): void
}
