const CALLS_MAX = 6
const ITEMS_MAX = 3
const TEXT_MAX = 48

/** The last calls of a store, with their arguments in short. */
export class CallTrace {
  readonly #calls: string[] = []

  /** The same store; its calls are remembered. */
  around<S extends object>(store: S): S {
    return new Proxy(store, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        return (...call: unknown[]): unknown => {
          this.#add(`${String(name)}(${call.map(described).join(', ')})`)
          return member.apply(target, call) as unknown
        }
      },
    })
  }

  text(): string {
    return this.#calls.map((call) => `  ${call}`).join('\n')
  }

  #add(call: string): void {
    this.#calls.push(call)
    if (this.#calls.length > CALLS_MAX) this.#calls.shift()
  }
}

function described(value: unknown): string {
  if (value instanceof Uint8Array) return describedBytes(value)
  if (value instanceof AbortSignal) return value.aborted ? '<aborted signal>' : '<signal>'
  if (typeof value === 'string') return shortened(JSON.stringify(value))
  if (typeof value !== 'object' || value === null) return String(value)
  if (Symbol.asyncIterator in value) return '<content>'
  if (Array.isArray(value)) {
    const rest = value.length > ITEMS_MAX ? [`... of ${value.length}`] : []
    return `[${[...value.slice(0, ITEMS_MAX).map(described), ...rest].join(', ')}]`
  }
  const members = Object.entries(value).map(([name, member]) => `${name}: ${described(member)}`)
  return `{ ${members.join(', ')} }`
}

/** As text if it is text: most keys of the suites are. */
export function describedBytes(bytes: Uint8Array | undefined): string {
  if (!bytes) return 'undefined'
  const text = Buffer.from(bytes.subarray(0, TEXT_MAX)).toString('latin1')
  const shown = /^[\x20-\x7e]*$/.test(text) ? JSON.stringify(text) : `0x${Buffer.from(text, 'latin1').toString('hex')}`
  return `${bytes.length} ${bytes.length === 1 ? 'byte' : 'bytes'} ${shortened(shown)}`
}

function shortened(text: string): string {
  return text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX)}...`
}
