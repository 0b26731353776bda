import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { download } from './download.ts'
import { MB, printRows, round, type Row } from './measure.ts'
import { building } from './model/building.ts'
import { countOf, orUsage, readOptions } from './options.ts'
import { build, exitOnSignals, issueToken, peakResidentBytes, startServer } from './server.ts'
import type { RunningServer } from './server-process.ts'
import { type Target, uploadAnotherRoot, type UploadReport, uploadModel } from './upload.ts'

/*
 * `npm run soak -- million`: a model of a million objects, uploaded and downloaded whole. Fails when a bound on memory or on the time to the first byte does not hold.
 */

const RESIDENT_MB_MAX = 300
const FIRST_BYTE_UNPLANNED_MS_MAX = 3_000
const FIRST_BYTE_PLANNED_MS_MAX = 100

const USAGE = 'tsx bench/million.ts [--objects N] [--folder PATH]'
const chosen = readOptions(USAGE, {
  objects: { type: 'string', default: '1000000' },
  folder: { type: 'string', default: tmpdir() },
})
const objects = orUsage(USAGE, () => countOf('objects', chosen.objects))
const run = promisify(execFile)

exitOnSignals()
const scratch = mkdtempSync(join(chosen.folder, 'stowage-million-'))
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }))
await soak(objects)

async function soak(objects: number): Promise<void> {
  build()
  const rows: Row[] = []
  const first = await withServer(async (server, target) => {
    const started = performance.now()
    const report = await uploadModel(target, building({ objects, closure: 'root-less' }))
    rows.push(uploadRow(report, (performance.now() - started) / 1_000), memoryRow('upload', server))
    return report
  })
  const newRootId = await withServer(async (server, target) => {
    const rootId = await uploadAnotherRoot(target, first.rootId)
    rows.push(await downloadRow('a new root, without a plan', target, rootId, FIRST_BYTE_UNPLANNED_MS_MAX))
    await download(graphUrl(target, rootId), linesHeaders(target))
    rows.push(
      await downloadRow('with a plan', target, rootId, FIRST_BYTE_PLANNED_MS_MAX),
      memoryRow('downloads', server),
    )
    return rootId
  })
  await withServer(async (server, target) => {
    rows.push(await downloadRow('with a plan, after a restart', target, newRootId, FIRST_BYTE_PLANNED_MS_MAX))
    rows.push(await completenessRow(target, newRootId, objects), memoryRow('downloads after a restart', server))
  })
  printRows(`A building of ${objects} objects`, rows)
  if (rows.some(({ met }) => met === false)) process.exitCode = 1
}

async function withServer<T>(use: (server: RunningServer, target: Target) => Promise<T>): Promise<T> {
  const data = join(scratch, 'data')
  const server = await startServer(data, ['--port', '0'])
  try {
    return await use(server, { url: server.url, token: await issueToken(data, 'million'), projectId: 'million' })
  } finally {
    await server.stop()
  }
}

async function downloadRow(name: string, target: Target, rootId: string, firstByteMsMax: number): Promise<Row> {
  const [{ bytes, seconds, firstByteSeconds }] = await download(graphUrl(target, rootId), linesHeaders(target))
  const firstByteMs = firstByteSeconds * 1_000
  return {
    what: `download, ${name}`,
    value: `first byte after ${round(firstByteMs)} ms, all ${round(bytes / MB)} MB after ${round(seconds)} s`,
    target: `first byte within ${firstByteMsMax} ms`,
    met: firstByteMs <= firstByteMsMax,
  }
}

/** Inflates and counts with programs of their own, so that nothing of Stowage judges itself. */
async function completenessRow(target: Target, rootId: string, objects: number): Promise<Row> {
  const headers = Object.entries(linesHeaders(target)).map(([name, value]) => `-H '${name}: ${value}'`)
  const { stdout } = await run('sh', [
    '-c',
    `curl -sS ${headers.join(' ')} ${graphUrl(target, rootId)} | gunzip | wc -l -c`,
  ])
  const [lines, bytes] = stdout.trim().split(/\s+/).map(Number)
  return {
    what: 'lines that arrive',
    value: `${lines}, ${round(bytes / MB)} MB`,
    target: String(objects),
    met: lines === objects,
  }
}

function uploadRow(report: UploadReport, seconds: number): Row {
  const megabytes = report.jsonBytes / MB
  const value = `${round(megabytes)} MB of JSON, ${round(report.jsonBytes / report.gzipBytes)} : 1, in ${report.requests} requests: ${round(megabytes / seconds)} MB/s with generating and compressing it`
  return { what: 'upload', value }
}

function memoryRow(after: string, server: RunningServer): Row {
  const megabytes = peakResidentBytes(server.pid) / MB
  return {
    what: `server memory, peak, ${after}`,
    value: `${round(megabytes)} MB resident`,
    target: `< ${RESIDENT_MB_MAX} MB`,
    met: megabytes < RESIDENT_MB_MAX,
  }
}

function graphUrl(target: Target, rootId: string): string {
  return `${target.url}/objects/${target.projectId}/${rootId}`
}

function linesHeaders(target: Target): Record<string, string> {
  return { Authorization: `Bearer ${target.token}`, Accept: 'text/plain', 'Accept-Encoding': 'gzip' }
}
