import { hash } from 'node:crypto'

export interface ModelObject {
  /** The first 32 hex digits of the SHA-256 of the object's text without its id. */
  readonly id: string
  readonly json: string
}

/** An object that was written, as its parents see it. */
export interface Written {
  readonly id: string
  /** Its descendants with their smallest depth, for those that have descendants and a closure. */
  readonly below: ReadonlyMap<string, number> | undefined
  /** Objects below it, without itself. Shared ones are counted once only if there is a closure. */
  readonly descendants: number
}

/**
 * Gives objects their ids and closures and gathers them in batches, children before parents. Each id is written once.
 */
export class ObjectWriter {
  #pending: ModelObject[] = []
  readonly #shared = new Map<string, Written>()
  readonly #wrongClosures: boolean
  #count = 0

  constructor({ wrongClosures = false }: { readonly wrongClosures?: boolean } = {}) {
    this.#wrongClosures = wrongClosures
  }

  get count(): number {
    return this.#count
  }

  get pendingCount(): number {
    return this.#pending.length
  }

  take(): readonly ModelObject[] {
    const batch = this.#pending
    this.#pending = []
    return batch
  }

  /** `fields` is the object's text from its first field on, without braces and id. */
  write(fields: string, children: readonly Written[] = [], closure: boolean = false): Written {
    const below = closure && children.length > 0 ? closureOf(children) : undefined
    const descendants = below?.size ?? children.reduce((sum, child) => sum + 1 + child.descendants, 0)
    const claimed = below === undefined ? '' : `,"__closure":${closureText(this.#wrongClosures ? wrong(below) : below)}`
    const rest = `${fields},"totalChildrenCount":${descendants}${claimed}}`
    const id = hash('sha256', `{${rest}`, 'hex').slice(0, 32)
    this.#pending.push({ id, json: `{"id":"${id}",${rest}` })
    this.#count += 1
    return { id, below, descendants }
  }

  /** An object that many parents refer to: written when it is first met. */
  share(name: string, make: () => Written): Written {
    let written = this.#shared.get(name)
    if (written === undefined) {
      written = make()
      this.#shared.set(name, written)
    }
    return written
  }
}

/** A list of references as a JSON array. */
export function references(children: readonly Written[]): string {
  return `[${children.map(reference).join(',')}]`
}

export function reference(child: Written): string {
  return `{"speckle_type":"reference","referencedId":"${child.id}"}`
}

function closureOf(children: readonly Written[]): Map<string, number> {
  const below = new Map<string, number>()
  for (const child of children) {
    below.set(child.id, 1)
    for (const [id, depth] of child.below ?? []) {
      const known = below.get(id)
      if (known === undefined || known > depth + 1) below.set(id, depth + 1)
    }
  }
  return below
}

function closureText(below: ReadonlyMap<string, number>): string {
  let text = ''
  for (const [id, depth] of below) text += `${text === '' ? '{' : ','}"${id}":${depth}`
  return `${text}}`
}

/** Without every second descendant, but with an object that does not exist. */
function wrong(below: ReadonlyMap<string, number>): Map<string, number> {
  const entries = [...below].filter((_, at) => at % 2 === 1)
  return new Map([...entries, [hash('sha256', [...below.keys()].join(), 'hex').slice(0, 32), 1]])
}
