import { join } from 'node:path'
import { download, type Download, downloadToFile } from '../download.ts'
import { describe, MB, repeat, round, type Row, sample } from '../measure.ts'
import type { FileServer } from '../nginx.ts'
import { cpuSeconds, type RunningServer } from '../server.ts'
import type { Target } from '../upload.ts'
import type { Version } from './dataset.ts'

/** Downloads over one connection that make one measurement. */
const DOWNLOADS_A_ROUND = 10
const RATIO_MIN = 1 / 3
const CPU_SECONDS_PER_GB_MAX = 1

interface Round {
  readonly megabytesPerSecond: number
  readonly cpuSecondsPerGigabyte: number
  readonly referenceMegabytesPerSecond: number
}

/** A root with everything below it as gzipped lines, warm, against nginx serving the same bytes from a file. */
export async function measureDownloads(
  server: RunningServer,
  target: Target,
  version: Version,
  nginx: FileServer | undefined,
  repetitions: number,
): Promise<readonly Row[]> {
  const url = `${target.url}/objects/${target.projectId}/${version.rootId}`
  const headers = { Authorization: `Bearer ${target.token}`, Accept: 'text/plain', 'Accept-Encoding': 'gzip' }
  const [cold] = await download(url, headers)
  await download(url, headers, 2)
  const fileName = `${version.rootId}.gz`
  if (nginx !== undefined) {
    await downloadToFile(url, headers, join(nginx.folder, fileName))
    await download(`${nginx.url}/${fileName}`, {}, 2)
  }
  const rounds = await repeat(repetitions, async (): Promise<Round> => {
    const cpuBefore = cpuSeconds(server.pid)
    const own = await download(url, headers, DOWNLOADS_A_ROUND)
    const cpu = cpuSeconds(server.pid) - cpuBefore
    const reference = nginx === undefined ? [] : await download(`${nginx.url}/${fileName}`, {}, DOWNLOADS_A_ROUND)
    return {
      megabytesPerSecond: rate(version, own),
      cpuSecondsPerGigabyte: cpu / ((version.textBytes * DOWNLOADS_A_ROUND) / (1_024 * MB)),
      referenceMegabytesPerSecond: rate(version, reference),
    }
  })
  return [ratioRow(version, rounds, nginx !== undefined), cpuRow(version, rounds), coldRow(version, cold)]
}

function rate(version: Version, downloads: readonly Download[]): number {
  return (version.textBytes * downloads.length) / MB / downloads.reduce((sum, { seconds }) => sum + seconds, 0)
}

function ratioRow(version: Version, rounds: readonly Round[], hasReference: boolean): Row {
  const what = `lines, gzip, warm, ${version.name}`
  const value = describe(sample(rounds.map(({ megabytesPerSecond }) => megabytesPerSecond)), 'MB/s')
  if (!hasReference)
    return { what, value, reference: 'nginx is not installed (Debian: apt-get install nginx-light): no reference' }
  const ratio = sample(rounds.map((each) => each.megabytesPerSecond / each.referenceMegabytesPerSecond))
  return {
    what,
    value,
    reference: `nginx ${describe(sample(rounds.map((each) => each.referenceMegabytesPerSecond)), 'MB/s')}, ratio ${describe(ratio, 'x')}`,
    target: `>= ${round(RATIO_MIN)} x`,
    met: ratio.median >= RATIO_MIN,
  }
}

function cpuRow(version: Version, rounds: readonly Round[]): Row {
  const cpu = sample(rounds.map(({ cpuSecondsPerGigabyte }) => cpuSecondsPerGigabyte))
  return {
    what: `server processor time, ${version.name}`,
    value: describe(cpu, 's per GB of JSON'),
    target: `< ${CPU_SECONDS_PER_GB_MAX} s`,
    met: cpu.median < CPU_SECONDS_PER_GB_MAX,
  }
}

function coldRow(version: Version, cold: Download): Row {
  const megabytesPerSecond = rate(version, [cold])
  return {
    what: `first download, ${version.name}`,
    value: `${round(megabytesPerSecond)} MB/s, first byte after ${round(cold.firstByteSeconds * 1_000)} ms; ${round(cold.bytes / MB)} MB sent, ${round(version.textBytes / cold.bytes)} : 1`,
  }
}
