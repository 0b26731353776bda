/** A fault that is planted in the core: in one file, a text that is there once is replaced by another. */
export interface Mutant {
  readonly name: string
  readonly path: string
  readonly replace: readonly (readonly [from: string, to: string])[]
}
