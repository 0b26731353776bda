/** Where a service writes what its operator should know. `console` is one, and so are pino's loggers. */
export interface Logger {
  error(fields: object, message: string): void
}
