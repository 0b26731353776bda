import type { Environment, Timer } from '../../environment.ts'

/**
 * A model often arrives in several uploads at once: its root is examined when none has been under way for this long.
 */
const QUIET_MS = 250
/** Waiting roots; the oldest are dropped, and planned at their first download. */
const ROOTS_MAX = 16
/**
 * How often an incomplete root is tried again, each time by a walk through its held part. After that it is planned at
 * its first download.
 */
const ATTEMPTS_MAX = 8
/** Projects that wait for something to complete their roots. */
const PROJECTS_MAX = 1_000

interface WaitingProject {
  uploads: number
  timer: Timer | undefined
  /** In the order of their arrival, each with its number of tries. */
  readonly roots: Map<string, number>
}

/** Decides when the plan of a new root is made ahead of its first download. */
export class PlanPrefetch {
  readonly #plan: (projectId: string, rootId: string, attempt: number) => void
  readonly #environment: Environment
  readonly #projects = new Map<string, WaitingProject>()

  /** `plan` is called when it is time; it calls `stillIncomplete` for a root that is. */
  constructor(plan: (projectId: string, rootId: string, attempt: number) => void, environment: Environment) {
    this.#plan = plan
    this.#environment = environment
  }

  uploadBegan(projectId: string): void {
    const project = this.#projectOf(projectId)
    project.uploads++
    project.timer?.cancel()
  }

  /** An object arrived that may be a root, or may complete one. */
  rootSeen(projectId: string, rootId: string): void {
    this.#await(projectId, rootId, 0)
  }

  /** A root that lacked something at the attempt with this number is looked at again, a few times. */
  stillIncomplete(projectId: string, rootId: string, attempt: number): void {
    if (attempt < ATTEMPTS_MAX) this.#await(projectId, rootId, attempt)
  }

  #await(projectId: string, rootId: string, attempts: number): void {
    const { roots } = this.#projectOf(projectId)
    roots.delete(rootId)
    roots.set(rootId, attempts)
    const [oldest] = roots.keys()
    if (roots.size > ROOTS_MAX) roots.delete(oldest)
  }

  uploadEnded(projectId: string): void {
    const project = this.#projects.get(projectId)
    if (project === undefined || --project.uploads > 0) return
    if (project.roots.size === 0) this.#projects.delete(projectId)
    else project.timer = this.#environment.setTimer(QUIET_MS, () => this.#quiet(projectId, project)).unref()
  }

  close(): void {
    for (const { timer } of this.#projects.values()) timer?.cancel()
    this.#projects.clear()
  }

  #projectOf(projectId: string): WaitingProject {
    const project = this.#projects.get(projectId) ?? { uploads: 0, timer: undefined, roots: new Map<string, number>() }
    this.#projects.set(projectId, project)
    const [oldest] = this.#projects
    if (this.#projects.size > PROJECTS_MAX && oldest[1].uploads === 0) this.#projects.delete(oldest[0])
    return project
  }

  #quiet(projectId: string, project: WaitingProject): void {
    const roots = [...project.roots]
    this.#projects.delete(projectId)
    for (const [rootId, attempts] of roots) this.#plan(projectId, rootId, attempts + 1)
  }
}
