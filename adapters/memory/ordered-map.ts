/**
 * Entries of one page; a full page is cut in two. Small enough to splice, large enough that a million entries make few
 * pages.
 */
const PAGE_ENTRIES_MAX = 256

interface Page<V> {
  readonly keys: string[]
  readonly values: V[]
}

/**
 * A map in the order of its keys, as pages of sorted arrays: two binary searches to find, one short splice to change.
 * Keys that hold one byte in each character (latin1) are in bytewise order.
 */
export class OrderedMap<V> {
  #pages: Page<V>[] = []

  get(key: string): V | undefined {
    const page = this.#pages[this.#pageOf(key)]
    if (!page) return undefined
    const at = lowerBound(page.keys, key)
    return page.keys[at] === key ? page.values[at] : undefined
  }

  set(key: string, value: V): void {
    const pageAt = Math.max(this.#pageOf(key), 0)
    const page = this.#pages[pageAt] ?? this.#firstPage()
    const at = lowerBound(page.keys, key)
    if (page.keys[at] === key) {
      page.values[at] = value
      return
    }
    page.keys.splice(at, 0, key)
    page.values.splice(at, 0, value)
    if (page.keys.length > PAGE_ENTRIES_MAX) this.#cut(pageAt, at === page.keys.length - 1)
  }

  delete(key: string): void {
    const pageAt = this.#pageOf(key)
    const page = this.#pages[pageAt]
    if (!page) return
    const at = lowerBound(page.keys, key)
    if (page.keys[at] !== key) return
    page.keys.splice(at, 1)
    page.values.splice(at, 1)
    if (page.keys.length === 0) this.#pages.splice(pageAt, 1)
  }

  clear(): void {
    this.#pages = []
  }

  /** Up to `max` entries from `gte` up to, not including, `lt`; from the end when `reverse`. */
  slice(gte: string, lt: string, max: number, reverse: boolean): [key: string, value: V][] {
    return reverse ? this.#before(gte, lt, max) : this.#after(gte, lt, max)
  }

  #after(gte: string, lt: string, max: number): [string, V][] {
    const found: [string, V][] = []
    let pageAt = Math.max(this.#pageOf(gte), 0)
    for (let page = this.#pages[pageAt]; page; page = this.#pages[++pageAt]) {
      for (let at = lowerBound(page.keys, gte); at < page.keys.length; at++) {
        if (found.length >= max || page.keys[at] >= lt) return found
        found.push([page.keys[at], page.values[at]])
      }
    }
    return found
  }

  #before(gte: string, lt: string, max: number): [string, V][] {
    const found: [string, V][] = []
    for (let pageAt = this.#pageOf(lt); pageAt >= 0; pageAt--) {
      const page = this.#pages[pageAt]
      for (let at = lowerBound(page.keys, lt) - 1; at >= 0; at--) {
        if (found.length >= max || page.keys[at] < gte) return found
        found.push([page.keys[at], page.values[at]])
      }
    }
    return found
  }

  /** The last page that starts at or before `key`, -1 if all start after it. */
  #pageOf(key: string): number {
    let low = 0
    let high = this.#pages.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#pages[middle].keys[0] <= key) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  #firstPage(): Page<V> {
    const page: Page<V> = { keys: [], values: [] }
    this.#pages.push(page)
    return page
  }

  /** Ascending inserts leave full pages behind them, others halves. */
  #cut(pageAt: number, atEnd: boolean): void {
    const page = this.#pages[pageAt]
    const from = atEnd ? page.keys.length - 1 : page.keys.length >>> 1
    this.#pages.splice(pageAt + 1, 0, { keys: page.keys.splice(from), values: page.values.splice(from) })
  }
}

/** The first index whose key is not before `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keys[middle] < key) low = middle + 1
    else high = middle
  }
  return low
}
