import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ANSWER_TIMEOUT_MS = 600_000

export interface Download {
  readonly status: number
  /** Bytes of the body as they were sent. */
  readonly bytes: number
  readonly seconds: number
  readonly firstByteSeconds: number
}

/**
 * Downloads with curl, which throws the body away: the client of least cost, the same for every server. All of `times`
 * downloads go over one connection, so that only the first one pays for it.
 */
export async function download(
  url: string,
  headers: Readonly<Record<string, string>>,
  times: number = 1,
): Promise<readonly Download[]> {
  const format = '%{http_code} %{size_download} %{time_total} %{time_starttransfer}\\n'
  const headerArgs = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const targets = Array.from({ length: times }, () => ['-o', '/dev/null', url]).flat()
  const { stdout } = await run('curl', ['-sS', '-w', format, ...headerArgs, ...targets], { timeout: ANSWER_TIMEOUT_MS })
  const downloads = stdout.trim().split('\n').map(parseLine)
  for (const { status } of downloads) if (status !== 200) throw new Error(`${new URL(url).pathname} answered ${status}`)
  return downloads
}

/** One download into a file, as it was sent. */
export async function downloadToFile(
  url: string,
  headers: Readonly<Record<string, string>>,
  path: string,
): Promise<void> {
  const headerArgs = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  await run('curl', ['-sS', '--fail', '-o', path, ...headerArgs, url], { timeout: ANSWER_TIMEOUT_MS })
}

function parseLine(line: string): Download {
  const [status, bytes, seconds, firstByteSeconds] = line.split(' ').map(Number)
  return { status, bytes, seconds, firstByteSeconds }
}
