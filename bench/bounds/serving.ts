import { startServer } from '../server.ts'
import type { RunningServer } from '../server-process.ts'

/** Lends a server over this folder, which merges no packs, and ends it. */
export async function whileServing<T>(
  data: string,
  use: (server: RunningServer) => Promise<T>,
  options: readonly string[] = [],
): Promise<T> {
  const server = await startServer(data, ['--port', '0', '--compact-every', '0', ...options])
  try {
    return await use(server)
  } finally {
    await server.stop()
  }
}
