import type { ObjectText } from '../../client/index.ts'

/**
 * Objects of the older file that are held at a time, and their characters. V8 promotes strings that are held for long,
 * and lets much garbage pile up before it collects them.
 */
const WINDOW_OBJECTS = 256
const WINDOW_CHARACTERS = 524_288
/**
 * If the older file has so many objects of the newer file, but not nearby, the older file continues further ahead. So
 * many objects are skipped at most.
 */
const MISSES_MAX = 1_024
const SKIPPED = 2_048

/**
 * The objects of an older file, read beside a newer one. Both list their objects in roughly the same order: if the
 * newer one has another object, the object in its place in the older one is probably its earlier form. This is a guess,
 * which can make nothing wrong.
 */
export class EarlierObjects {
  readonly #objects: AsyncIterator<ObjectText>
  #window: ObjectText[] = []
  #characters = 0
  /** How many of the window's first objects were skipped. */
  #passed = 0
  readonly #places = new Map<string, number>()
  #misses = 0
  #isAtEnd = false

  constructor(batches: AsyncIterable<readonly ObjectText[]>) {
    this.#objects = oneByOne(batches)
  }

  /** The next object of the newer file is in the older one, too. */
  async meet(id: string): Promise<void> {
    await this.#fill()
    const place = this.#places.get(id)
    if (place !== undefined) this.#passTo(place + 1)
    else if (++this.#misses > MISSES_MAX) await this.#skip()
  }

  /** The next object of the newer file is not in the older one. Returns its probable earlier form. */
  async replaced(): Promise<ObjectText | undefined> {
    await this.#fill()
    const object = this.#window[this.#passed]
    if (object !== undefined) this.#passed += 1
    return object
  }

  async close(): Promise<void> {
    await this.#objects.return?.()
  }

  async #skip(): Promise<void> {
    this.#passTo(this.#window.length)
    for (let skipped = this.#window.length; skipped < SKIPPED && !this.#isAtEnd; skipped++)
      this.#isAtEnd = (await this.#objects.next()).done === true
  }

  #passTo(place: number): void {
    this.#misses = 0
    this.#passed = Math.max(this.#passed, place)
  }

  /** Removes skipped objects once they are most of the window, and reads on. */
  async #fill(): Promise<void> {
    if (this.#isAtEnd || this.#window.length - this.#passed > WINDOW_OBJECTS / 2) return
    for (const { json } of this.#window.slice(0, this.#passed)) this.#characters -= json.length
    this.#window = this.#window.slice(this.#passed)
    this.#passed = 0
    while (
      this.#window.length < WINDOW_OBJECTS &&
      (this.#window.length === 0 || this.#characters < WINDOW_CHARACTERS)
    ) {
      const next = await this.#objects.next()
      if (next.done === true) {
        this.#isAtEnd = true
        break
      }
      this.#window.push(next.value)
      this.#characters += next.value.json.length
    }
    this.#places.clear()
    for (const [place, { id }] of this.#window.entries()) this.#places.set(id, place)
  }
}

async function* oneByOne(batches: AsyncIterable<readonly ObjectText[]>): AsyncGenerator<ObjectText> {
  for await (const batch of batches) yield* batch
}
