import type { Command } from 'commander'
import { listProjects } from '../../archive/list-projects.ts'
import { ClientError } from '../../client/index.ts'
import { describeFailure, EXIT, FindingsError } from '../common/exit.ts'
import { printable } from '../common/format.ts'
import { printLine, printNote } from '../common/output.ts'
import { type Connected, type ConnectOptions, withAdvice, withServer } from './connect.ts'

type Use = (connected: Connected) => Promise<void>

/** Failures that the next project would meet too. */
const SERVER_CODES: ReadonlySet<string> = new Set([
  'unauthenticated',
  'closing',
  'access_unavailable',
  'storage_unavailable',
  'maintenance',
])

/**
 * Runs upkeep on the project of the options, or without one on each in which the token may write, one after the other.
 * A project without objects is no failure: it may have models only. As in a service, a project that fails does not stop
 * the others; its failure is printed, and the exit code tells of it in the end.
 */
export async function withProjects(options: ConnectOptions, command: Command, use: Use): Promise<void> {
  await withServer(options, command, async (connectTo, { server, signal }) => {
    if (options.project !== undefined) return useOne(connectTo(options.project), options, use)
    const refusals: ClientError[] = []
    let failed = 0
    const ids = await listProjects(server, signal)
    for (const id of ids) {
      signal.throwIfAborted()
      try {
        await use(connectTo(id))
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof ClientError && error.isAnswered) || SERVER_CODES.has(error.code)) throw error
        if (isWithoutObjects(error)) tellWithoutObjects(id, options)
        else if (error.code === 'forbidden') refusals.push(error)
        else {
          failed++
          printNote(`the project "${printable(id)}" failed: ${describeFailure(withAdvice(error, options))}`)
        }
      }
    }
    if (ids.length > 0 && refusals.length === ids.length) throw refusals[0]
    if (failed > 0) throw new FindingsError(EXIT.failure)
  })
}

async function useOne(connected: Connected, options: ConnectOptions, use: Use): Promise<void> {
  const { project, signal } = connected
  try {
    await use(connected)
  } catch (error) {
    if (!isWithoutObjects(error)) throw error
    // Rejects if the project does not exist.
    await project.usage({ signal })
    tellWithoutObjects(project.id, options)
  }
}

function isWithoutObjects(error: unknown): boolean {
  return error instanceof ClientError && error.code === 'not_found'
}

function tellWithoutObjects(projectId: string, { json }: ConnectOptions): void {
  if (json !== true) printLine(`${printable(projectId)}: holds no objects`)
}
