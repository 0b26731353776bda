/** Texts of one file that are replaced; each is there once. */
export interface Edit {
  readonly path: string
  readonly replace: readonly (readonly [from: string, to: string])[]
}

/** A fault that is planted in the core. */
export interface Mutant extends Edit {
  readonly name: string
  /** The workload that finds it. `objects` by default. */
  readonly workload?: 'objects' | 'automation'
  /** The seeds to try: more than usual for what few seeds find. */
  readonly seeds?: number
  /** Changes of other files that belong to it. */
  readonly also?: readonly Edit[]
}

/** A mend of the core that is taken out. */
export interface TakenOut extends Mutant {
  /** The story of the fault: what went wrong before the mend. */
  readonly fault: string
}
