import { createInterface } from 'node:readline/promises'
import { Command, Option } from 'commander'
import { openAccess } from '../../access/open.ts'
import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import type { ObjectService } from '../../service/object-service.ts'
import { EXIT_HELP } from '../common/exit.ts'
import { jsonOption } from '../common/options.ts'
import { printJson, printLine } from '../common/output.ts'
import { addStoragePlace, type StoragePlace } from '../common/shared-storage.ts'
import { withStorage } from '../common/storage.ts'

const EXAMPLES = `
Examples:
  stowage project list                          the ids of all projects with objects
  stowage project remove demo                   asks before it removes
  stowage project remove demo --yes             does not

A project exists from its first object on. Stop the server of a folder first; servers that share their storage go on. A host does the same in process
with service.projects() and service.project(id).remove().
${EXIT_HELP}`

interface ListOptions extends StoragePlace {
  readonly json?: boolean
}

interface RemoveOptions extends ListOptions {
  readonly yes?: boolean
}

export function projectCommand(): Command {
  return new Command('project')
    .summary('list and remove projects')
    .description('List and remove projects.')
    .addCommand(listCommand())
    .addCommand(removeCommand())
    .addHelpText('after', EXAMPLES)
}

function listCommand(): Command {
  return addStoragePlace(new Command('list'))
    .summary('show the projects that hold something')
    .description('Show the ids of all projects with objects, one a line.')
    .addOption(jsonOption('print {"project": <id>} for each, one a line'))
    .addHelpText('after', '\nExample:\n  stowage project list --data /var/lib/stowage')
    .action((options: ListOptions) => listProjects(options))
}

export async function listProjects(options: ListOptions): Promise<void> {
  await withService(options, async (service) => {
    for await (const ids of service.projects()) {
      for (const project of ids)
        if (options.json === true) printJson({ project })
        else printLine(project)
    }
  })
}

function removeCommand(): Command {
  return addStoragePlace(new Command('remove'))
    .summary('remove a project with all its objects')
    .description('Remove a project with all its objects. It becomes unreadable at once; its space is freed later.')
    .argument('<project>', 'the id of the project')
    .addOption(new Option('--yes', 'do not ask'))
    .addOption(jsonOption('print {"removed": <id>}'))
    .addHelpText('after', '\nExample:\n  stowage project remove demo --yes')
    .action(remove)
}

async function remove(project: string, { yes = false, json, ...place }: RemoveOptions): Promise<void> {
  if (!yes && !process.stdin.isTTY)
    throw new StowageError('invalid_request', 'removing needs a confirmation, but there is no terminal; add --yes')
  await withService(place, async (service) => {
    if (!(await holds(service, project)))
      throw new StowageError(
        'not_found',
        `no project ${quoted(project)} exists; "stowage project list" shows the projects`,
      )
    if (!yes) await confirm(project)
    await service.project(project).remove()
    if (json) printJson({ removed: project })
    else printLine(`removed ${project}`)
  })
}

async function withService(place: StoragePlace, use: (service: ObjectService) => Promise<void>): Promise<void> {
  const { automation } = await import('../../automation-server/automation.ts')
  const { createObjectService } = await import('../../service/service.ts')
  await withStorage(place, async (backend) => {
    const service = createObjectService({ backend, access: openAccess(), extensions: [automation()] })
    try {
      await use(service)
    } finally {
      await service.close()
    }
  })
}

async function holds(service: ObjectService, project: string): Promise<boolean> {
  for await (const ids of service.projects()) if (ids.includes(project)) return true
  return false
}

async function confirm(project: string): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(
    `All objects of the project ${quoted(project)} will be removed. Type its id to go on: `,
  )
  terminal.close()
  if (answer !== project) throw new Error('nothing was removed: the answer was not the id of the project')
}
