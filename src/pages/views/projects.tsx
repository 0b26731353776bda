import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'
import { Empty } from './parts.tsx'

interface ProjectsProps {
  readonly frame: Frame
  readonly projectIds: readonly string[]
  /** Whether there are more than are shown. */
  readonly isCut: boolean
  readonly problem?: string
}

export function ProjectsPage({ frame, projectIds, isCut, problem }: ProjectsProps): Html {
  const { urls } = frame
  return (
    <Page frame={frame} title="Projects">
      <h1>Projects</h1>
      {projectIds.length === 0 ? (
        <Empty>You cannot see any projects yet. The first upload to a project creates it.</Empty>
      ) : (
        <ul class="rows">
          {projectIds.map((id) => (
            <li>
              <a class="main" href={urls.project(id)}>
                <bdi>{id}</bdi>
              </a>
            </li>
          ))}
        </ul>
      )}
      {isCut ? <p class="note">There are more projects than are shown here. Open others by their ids.</p> : null}
      <form class="inline" method="get" action={urls.openProject}>
        <div class="field">
          <label for="id">Open a project by its id</label>
          {problem === undefined ? null : (
            <p class="complaint" id="id-error">
              {problem}
            </p>
          )}
          <input
            id="id"
            name="id"
            type="text"
            autocomplete="off"
            spellcheck={false}
            required
            aria-describedby={problem === undefined ? undefined : 'id-error'}
          />
        </div>
        <button type="submit" class="second">
          Open
        </button>
      </form>
    </Page>
  )
}
