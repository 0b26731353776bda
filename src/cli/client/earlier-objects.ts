import type { ObjectText } from '../../client/index.ts'

/** Objects of the older file that are held at a time, and characters of them. What is held for long V8 takes for lasting, and lets much of it come together before it collects that. */
const WINDOW_OBJECTS = 256
const WINDOW_CHARACTERS = 524_288
/** So many objects of the newer file that are in the older one, but not near, mean that this one goes on further ahead: so many are passed by. */
const MISSES_MAX = 1_024
const SKIPPED = 2_048

/**
 * The objects of an older file, read beside a newer one. Both list their objects in the same order, by and large: where the newer one has another object, what
 * stands in its place in the older one is most likely what it was. A guess, by which nothing can become wrong.
 */
export class EarlierObjects {
  readonly #objects: AsyncIterator<ObjectText>
  #window: ObjectText[] = []
  #characters = 0
  /** How many of the window's first objects were passed by. */
  #passed = 0
  readonly #places = new Map<string, number>()
  #misses = 0
  #isAtEnd = false

  constructor(batches: AsyncIterable<readonly ObjectText[]>) {
    this.#objects = oneByOne(batches)
  }

  /** The newer file goes on with an object that the older one has, too. */
  async meet(id: string): Promise<void> {
    await this.#fill()
    const place = this.#places.get(id)
    if (place !== undefined) this.#passTo(place + 1)
    else if (++this.#misses > MISSES_MAX) await this.#skip()
  }

  /** The newer file goes on with an object that the older one does not have: which one may it have been? */
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

  /** Takes out what was passed by once that is most of the window, and reads on. */
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
