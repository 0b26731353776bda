import type { Pin } from '../object/roots.ts'
import { type ProjectOracle, Violation } from './oracle.ts'
import type { Span } from './span.ts'

/** A pin that a client made, or tried to make. */
export interface KeptRoot extends Span {
  readonly rootId: string
  /** Nobody else gives this name. */
  readonly name: string
  /** `undefined` as long as nobody was told. */
  pinId: string | undefined
  /** `acknowledged`: it is there. `unknown`: perhaps. `refused`: it is not. */
  outcome: 'unknown' | 'acknowledged' | 'refused'
  /** When it was taken back. */
  release: (Span & { isAcknowledged: boolean }) | undefined
}

/** The pins that a project may have, from what clients did and were told. */
export class RootBook {
  readonly #oracle: ProjectOracle
  readonly #roots: KeptRoot[] = []

  constructor(oracle: ProjectOracle) {
    this.#oracle = oracle
  }

  begin(rootId: string, name: string): KeptRoot {
    const root: KeptRoot = {
      ...this.#oracle.begin(),
      rootId,
      name,
      pinId: undefined,
      outcome: 'unknown',
      release: undefined,
    }
    this.#roots.push(root)
    return root
  }

  /** The pins that somebody knows and nobody has taken back. */
  get known(): readonly KeptRoot[] {
    return this.#roots.filter(({ pinId, release }) => pinId !== undefined && release === undefined)
  }

  /** Roots that are kept for certain throughout this span. */
  certain(span: Span): readonly KeptRoot[] {
    return this.#roots.filter(
      (root) =>
        root.outcome === 'acknowledged' &&
        root.end < span.start &&
        !(root.release !== undefined && root.release.start < span.end) &&
        !this.#oracle.isRemovedWithin(root, span),
    )
  }

  /** Whether the pin may have gone with its project. */
  mayBeGone(root: KeptRoot, span: Span): boolean {
    return this.#oracle.isRemovedWithin(root, { ...span, end: Infinity })
  }

  /** The pins of a project were listed. Throws `Violation` if one is missing, or one is there that cannot be. */
  saw(pins: readonly Pin[], span: Span): void {
    for (const { rootId, name } of this.certain(span))
      if (!pins.some((pin) => pin.name === name)) throw new Violation(`the pin ${name} on ${rootId} is not listed`)
    for (const { name, rootObjectId } of pins) {
      const root = this.#roots.find((one) => one.name === name && one.rootId === rootObjectId)
      if (root === undefined || root.outcome === 'refused' || root.start > span.end)
        throw new Violation(`a pin ${name} on ${rootObjectId} is listed, and nobody made it`)
      if (root.release?.isAcknowledged === true && root.release.end < span.start)
        throw new Violation(`the pin ${name} is listed, though it was removed`)
      if (this.#oracle.isCertainlyRemoved(root, span))
        throw new Violation(`the pin ${name} is listed, though its project was removed`)
    }
  }
}
