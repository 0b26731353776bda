import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { downloadToFile } from '../download.ts'
import type { LoadClient } from '../load/client.ts'
import { startNginx } from '../nginx.ts'
import { type Planned, urlOf } from './planned.ts'
import { secondsSince } from './processor-time.ts'
import { whileServing } from './serving.ts'

/** A planned answer as a file, and nginx, which sends it. */
export interface SameBytes {
  readonly file: string
  readonly nginxUrl: string
  readonly stop: () => Promise<void>
}

export async function startSameBytes(planned: Planned, folder: string): Promise<SameBytes> {
  const nginx = await startNginx(folder)
  if (nginx === undefined) throw new Error('nginx is not installed; it serves the same bytes, to compare with')
  const name = 'answer.gz'
  const file = join(nginx.folder, name)
  await whileServing(planned.data, (server) => downloadToFile(urlOf(server, planned), planned.headers, file))
  return { file, nginxUrl: `${nginx.url}/${name}`, stop: () => nginx.stop() }
}

/** Of processor time, to compute the checksum of the file. */
export function checksumSeconds(file: string): number {
  const bytes = readFileSync(file)
  const started = process.cpuUsage()
  crc32(bytes)
  return secondsSince(started)
}

/** The seconds that one download takes. */
export async function secondsToDownload(
  client: LoadClient,
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const { origin, pathname } = new URL(url)
  const { seconds } = await client.run({
    origin,
    connections: 1,
    exchanges: [{ method: 'GET', path: pathname, headers }],
  })
  return seconds
}
