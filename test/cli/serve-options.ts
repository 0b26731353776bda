import { serveCommand } from '../../src/cli/commands/serve.ts'
import type { ServeOptions } from '../../src/cli/server/run-server.ts'

/** What the parser makes of options of `stowage serve`; nothing is served. */
export function parsed(...args: readonly string[]): ServeOptions {
  const command = serveCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .action(() => undefined)
  return command.parse(args, { from: 'user' }).opts()
}
