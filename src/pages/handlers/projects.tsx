import { ALL_PROJECTS } from '../../access/access.ts'
import { StowageError } from '../../errors.ts'
import type { Resource } from '../../http/router.ts'
import { checkProjectId } from '../../object/id.ts'
import type { PageServer } from '../server/page-server.tsx'
import { WEB } from '../views/urls.ts'
import { ProjectsPage } from '../views/projects.tsx'
import { pageAnswer, seeOther, type Visit } from '../server/visit.ts'

const SHOWN_MAX = 500
const LOOKED_AT_MAX = 10_000

/** The projects that a person may read, and a way to those that are not shown. */
export function projectsResources<H>(server: PageServer<H>): readonly Resource<H>[] {
  return [
    server.signedIn(WEB, {
      GET: async (visit) => pageAnswer(<ProjectsPage frame={visit.frame} {...await readableProjects(visit)} />),
    }),
    server.signedIn(`${WEB}/projects`, {
      GET: async (visit) => {
        const id = visit.exchange.query.get('id')
        if (id === null) return seeOther(visit.urls.home)
        const problem = idProblem(id)
        if (problem === undefined) return seeOther(visit.urls.project(id))
        return pageAnswer(
          <ProjectsPage frame={visit.frame} {...await readableProjects(visit)} problem={problem} />,
          422,
        )
      },
    }),
  ]
}

function idProblem(id: string): string | undefined {
  try {
    checkProjectId(id)
    return undefined
  } catch (error) {
    if (!(error instanceof StowageError)) throw error
    return id === ''
      ? 'Enter the id of a project.'
      : `${error.message.slice(0, 1).toUpperCase()}${error.message.slice(1)}.`
  }
}

/** Those that the person's token names, and those that hold something and that the person may read. */
async function readableProjects<H>({
  context,
  principal,
}: Visit<H>): Promise<{ readonly projectIds: readonly string[]; readonly isCut: boolean }> {
  const found = new Set<string>()
  let lookedAt = 0
  const see = async (ids: Iterable<string>): Promise<boolean> => {
    for (const id of ids) {
      if (lookedAt++ >= LOOKED_AT_MAX || found.size > SHOWN_MAX) return false
      if (!found.has(id) && (await context.authorize(principal, id, 'read'))) found.add(id)
    }
    return true
  }
  const named =
    principal.projects instanceof Map ? [...principal.projects.keys()] : Object.keys(principal.projects ?? {})
  let sawAll = await see(named.filter((id) => id !== ALL_PROJECTS && idProblem(id) === undefined))
  for await (const ids of context.projects()) {
    if (!sawAll) break
    sawAll = await see(ids)
  }
  const shown = [...found].sort((a, b) => a.localeCompare(b, 'en')).slice(0, SHOWN_MAX)
  return { projectIds: shown, isCut: !sawAll || found.size > SHOWN_MAX }
}
