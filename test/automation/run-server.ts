import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { JsonObject } from '../../src/automation/index.ts'
import { RUN_STATUS_RANK, type RunFile, type RunReport } from '../../src/automation/runtime/index.ts'
import { StowageError } from '../../src/index.ts'
import { memoryRun, type MemoryRun } from './memory-run.ts'
import { temporaryFolder } from '../support/folder.ts'
import { listenUntilEnd } from '../support/listen.ts'

export const TOKEN = 'token/of+the run-47110815'

export interface RunServer {
  readonly run: MemoryRun
  readonly runFile: (inputs?: JsonObject) => RunFile
  /** Writes the run file, to be removed with the test. */
  readonly written: (inputs?: JsonObject) => Promise<string>
  /** Paths that were asked for, below the run. */
  readonly asked: string[]
  /** What is done with a request instead of serving it; false lets it through. */
  fault: (req: IncomingMessage, res: ServerResponse, name: string) => boolean | Promise<boolean>
}

/** One run in memory behind a port of this machine, for faults that a server should not have. */
export async function runServer(t: TestContext, model?: object): Promise<RunServer> {
  const run = await memoryRun(model)
  const asked: string[] = []
  const server = createServer((req, res) => void serve(req, res).catch((error: unknown) => refuse(res, error)))
  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const url = new URL(req.url as string, 'http://server')
    const name = /^\/api\/v1\/projects\/demo\/(?:runs\/run|models\/model)\/(\w+)/.exec(url.pathname)?.[1]
    if (name === undefined) return run.service.node(req, res)
    asked.push(name)
    if (await running.fault(req, res, name)) return
    if (req.headers.authorization !== `Bearer ${TOKEN}`)
      throw new StowageError('unauthenticated', `${req.headers.authorization} is not the token of the run`)
    answer(res, 200, await answered(run, req, url, name))
  }
  const { url: speckleServerUrl } = await listenUntilEnd(t, server)
  const runFile = (functionInputs: JsonObject | null = null): RunFile => ({
    speckleToken: TOKEN,
    functionInputs,
    automationRunData: { ...run.runData, speckleServerUrl },
  })
  const running: RunServer = {
    run,
    runFile,
    written: (inputs) => writtenFile(t, runFile(inputs)),
    asked,
    fault: () => false,
  }
  return running
}

async function answered(
  { backend, rootObjectId }: MemoryRun,
  req: IncomingMessage,
  url: URL,
  name: string,
): Promise<object> {
  const idempotencyKey = String(req.headers['idempotency-key'])
  switch (name) {
    case 'versions': {
      if (req.method === 'GET') return { id: 'version', modelId: 'model', rootObjectId, message: '' }
      const { projectId = 'demo', ...wanted } = JSON.parse(await bodyText(req)) as {
        projectId?: string
        modelId: string
        rootObjectId: string
        message: string
      }
      return { id: await backend.createVersion({ ...wanted, projectId, idempotencyKey }) }
    }
    case 'report':
      await backend.report(JSON.parse(await bodyText(req)) as RunReport)
      return {}
    case 'lease': {
      const { status } = backend.reported
      return { status, canceled: RUN_STATUS_RANK[status] >= RUN_STATUS_RANK.canceled }
    }
    case 'artifacts':
      return {
        id: await backend.storeArtifact({
          name: url.searchParams.get('name') as string,
          sizeBytes: 0,
          idempotencyKey,
          content: req,
        }),
      }
    default:
      throw new StowageError('route_not_found', name)
  }
}

async function writtenFile(t: TestContext, file: RunFile): Promise<string> {
  const folder = temporaryFolder(t)
  const path = join(folder, 'run.json')
  await writeFile(path, JSON.stringify(file), { mode: 0o600 })
  return path
}

async function bodyText(req: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of req.setEncoding('utf8')) text += String(chunk)
  return text
}

export function answer(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

/** Reads what is still coming, as a server must that wants to be heard. */
function refuse(res: ServerResponse, error: unknown): void {
  const known =
    error instanceof StowageError
      ? error
      : new StowageError('internal', 'the server of the test failed', { cause: error })
  res.req.resume()
  if (!res.headersSent && !res.destroyed) answer(res, known.statusCode, known.toJSON())
}
