/** A project as one request sees it. */
export interface ProjectView {
  readonly projectId: string
  readonly generation: number
  readonly sequence: number
  /** Tells which place of an object is its current one. */
  readonly layout: number
}

/** A project in storage, whatever its state. */
export type StoredProject = Pick<ProjectView, 'projectId' | 'generation'>
