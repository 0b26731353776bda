import { contentId, lineText, withId } from '../common/content-id.ts'
import { ClientError, quoted } from '../common/errors.ts'
import type { ObjectTexts } from '../download/deltas.ts'
import type { TextWithBase, CallOptions, ObjectText } from '../common/types.ts'
import { Closures, type Descendants } from './closures.ts'
import type { Origin, Origins } from './origins.ts'
import { type Child, hasToJson, prepare, type PrepareOptions, type Prepared } from './prepare.ts'
import { isReference } from '../common/references.ts'
import { CHUNK_TYPE, type GraphConventions, type Reference, TYPE_FIELD } from './shape.ts'

/** Options for turning a value into objects. */
export interface SerializeOptions extends GraphConventions, CallOptions {
  /** The origin of received values: their unchanged parts keep their ids. */
  readonly origins?: Origins
  /**
   * The most descendants that `__closure` names; an object with more has none. 150,000 by default, since the closure
   * counts toward the object's size.
   */
  readonly closureIdsMax?: number
  /** The largest text of one object, in bytes of UTF-8. 10,485,760 by default, as the server has it. */
  readonly objectBytesMax?: number
  /** The most levels of arrays and objects inside one object. 1,000 by default, as the server has it. */
  readonly nestingMax?: number
  /** Makes an object's id from its text without `id`. The first 32 hex digits of its SHA-256 by default. */
  readonly newId?: (text: string) => string | Promise<string>
}

type Settings = Required<Omit<SerializeOptions, 'signal' | 'origins'>> &
  Pick<SerializeOptions, 'signal' | 'origins'> &
  PrepareOptions

const CLOSURE_MAX = 150_000
const OBJECT_BYTES_MAX = 10_485_760
const NESTING_MAX = 1_000
/** Objects whose hashes are taken at once: one by one it takes ten times as long. */
const READY_MIN = 256
const BATCH_BYTES = 1_048_576
/** Objects below each other: their closures grow with the square of that. */
const DEPTH_MAX = 10_000

const encoder = new TextEncoder()

/**
 * A value as objects, in batches, children before their parents, the value itself last. A value under a name that
 * begins with `@` becomes a separate object, `@(1000)name` an array in chunks of 1,000; other values stay in place. An
 * object that is met twice is written once. Every object gets `id`, `totalChildrenCount` and, if there is something
 * below it, `__closure`; members of the value with these names are omitted. Throws `invalid_value` for a cycle and for
 * values that JSON cannot hold, naming the place.
 */
export async function* serialize(value: object, options: SerializeOptions = {}): AsyncGenerator<readonly ObjectText[]> {
  for await (const batch of serialized(value, options)) yield batch.map(({ object }) => object)
}

/**
 * The same, with objects that changed since they were received linked to their earlier form, if that text is available.
 */
export async function* serializeWithBases(
  value: object,
  options: SerializeOptions,
  earlier: ObjectTexts,
): AsyncGenerator<readonly (ObjectText | TextWithBase)[]> {
  for await (const batch of serialized(value, options)) {
    const ids = batch.flatMap(({ earlierId }) => earlierId ?? [])
    const texts = new Map((ids.length === 0 ? [] : await earlier.getMany(ids)).map((json, at) => [ids[at], json]))
    yield batch.map(({ object, earlierId = '' }) => {
      const json = texts.get(earlierId)
      return json === undefined ? object : { ...object, base: { id: earlierId, json } }
    })
  }
}

/** An object, and the id under which it was received before it changed. */
interface Serialized {
  readonly object: ObjectText
  readonly earlierId: string | undefined
}

async function* serialized(value: object, options: SerializeOptions): AsyncGenerator<readonly Serialized[]> {
  const settings: Settings = {
    ...options,
    typeField: options.typeField ?? TYPE_FIELD,
    chunkType: options.chunkType ?? CHUNK_TYPE,
    closureIdsMax: options.closureIdsMax ?? CLOSURE_MAX,
    objectBytesMax: options.objectBytesMax ?? OBJECT_BYTES_MAX,
    nestingMax: options.nestingMax ?? NESTING_MAX,
    newId: options.newId ?? contentId,
    origins: options.origins,
  }
  const top: unknown = hasToJson(value) ? value.toJSON('') : value
  if (typeof top !== 'object' || top === null || Array.isArray(top) || ArrayBuffer.isView(top) || isReference(top)) {
    throw new ClientError(
      'invalid_value',
      'the value to serialize must be an object, not an array, a reference or a primitive value',
    )
  }
  yield* new Serializer(settings).run(top)
}

/** An object of its own, from when it is met until its id is known. */
interface Node {
  readonly path: string
  readonly origin: Origin | undefined
  /** References and parents that wait for the id. */
  readonly references: Reference[]
  readonly parents: Node[]
  prepared: Prepared | undefined
  /** The number of its children without an id; one more while children are still being met. */
  waitsFor: number
  id: string | undefined
}

interface Frame {
  readonly node: Node
  /** The next child. */
  next: number
}

class Serializer {
  readonly #settings: Settings
  readonly #closures = new Closures()
  readonly #nodes = new Map<object, Node>()
  #ready: Node[] = []

  constructor(settings: Settings) {
    this.#settings = settings
  }

  /** Depth first with a stack of its own: graphs may be deeper than calls. */
  async *run(value: object): AsyncGenerator<readonly Serialized[]> {
    const { origins } = this.#settings
    const root = this.#enter(value, origins?.ofObject(value), '')
    this.#nodes.set(value, root)
    const stack: Frame[] = [{ node: root, next: 0 }]
    const path = new Set([root])
    for (let frame = stack.at(-1); frame !== undefined; frame = stack.at(-1)) {
      const child = frame.node.prepared?.children[frame.next++]
      if (child === undefined) {
        stack.pop()
        path.delete(frame.node)
        this.#settle(frame.node)
        if (this.#ready.length >= READY_MIN) yield* this.#flush(READY_MIN)
        continue
      }
      const node = this.#descend(frame.node, child, path)
      if (node !== undefined) stack.push({ node, next: 0 })
    }
    yield* this.#flush(1)
  }

  /** Ties a child to its parent. Returns its node when it is met for the first time. */
  #descend(parent: Node, child: Child, path: Set<Node>): Node | undefined {
    const known = this.#nodes.get(child.value)
    if (known !== undefined && path.has(known))
      throw refusal(child.path, 'is an object that it lies below; objects must not form a cycle')
    const node = known ?? this.#enter(child.value, child.origin, child.path)
    link(parent, node, child)
    if (known !== undefined) return undefined
    if (path.size >= DEPTH_MAX) throw refusal(child.path, `lies below more than ${DEPTH_MAX} objects`)
    if (!child.isPiece) this.#nodes.set(child.value, node)
    path.add(node)
    return node
  }

  #enter(value: object, origin: Origin | undefined, path: string): Node {
    const prepared = prepare(value, origin, path, this.#settings)
    return { path, origin, references: [], parents: [], prepared, waitsFor: 1, id: undefined }
  }

  #settle(node: Node): void {
    node.waitsFor -= 1
    if (node.waitsFor === 0) this.#ready.push(node)
  }

  /** Writes the ready objects until fewer than `min` are ready; written objects may make their parents ready. */
  async *#flush(min: number): AsyncGenerator<readonly Serialized[]> {
    while (this.#ready.length >= min) {
      this.#settings.signal?.throwIfAborted()
      const drafts: Draft[] = []
      for (let bytes = 0, node = this.#ready.pop(); node !== undefined; node = this.#ready.pop()) {
        const draft = this.#draft(node)
        drafts.push(draft)
        bytes += draft.body.length + draft.tail.length
        if (bytes >= BATCH_BYTES || drafts.length >= READY_MIN) break
      }
      const texts = await Promise.all(drafts.map((draft) => this.#identified(draft)))
      const fresh = texts.filter(({ object }, at) => this.#finish(drafts[at], object))
      if (fresh.length > 0) yield fresh
    }
  }

  #draft(node: Node): Draft {
    const { body: members, references } = node.prepared as Prepared
    const below = this.#closures.merge(references.map(({ referencedId }) => this.#closures.numberOf(referencedId)))
    const count = below.numbers.length
    const body = lineText(members)
    const closure =
      count === 0 || count > this.#settings.closureIdsMax ? '' : `,"__closure":${this.#closures.text(below)}`
    return { node, below, body, tail: `${body === '{}' ? '' : ','}"totalChildrenCount":${count}${closure}}` }
  }

  async #identified({ node, body, tail }: Draft): Promise<Serialized> {
    const text = body.slice(0, -1) + tail
    const { origin } = node
    const isUnchanged = origin !== undefined && (await contentId(body)) === origin.fingerprint
    const object = withId(isUnchanged ? origin.id : await this.#settings.newId(text), text)
    const { objectBytesMax } = this.#settings
    if (object.json.length * 3 <= objectBytesMax || encoder.encode(object.json).length <= objectBytesMax) {
      return { object, earlierId: isUnchanged ? undefined : origin?.id }
    }
    throw refusal(
      node.path,
      `makes an object of more than ${objectBytesMax} bytes; detach parts of it ("@name") or cut its arrays ("@(1000)name")`,
    )
  }

  /** Whether no object with this id was written before. */
  #finish({ node, below }: Draft, { id }: ObjectText): boolean {
    node.id = id
    node.prepared = undefined
    for (const reference of node.references.splice(0)) reference.referencedId = id
    for (const parent of node.parents.splice(0)) this.#settle(parent)
    return this.#closures.finish(this.#closures.numberOf(id), below)
  }
}

interface Draft {
  readonly node: Node
  readonly below: Descendants
  /** The object's text without `id`, `totalChildrenCount` and `__closure`. */
  readonly body: string
  /** The text that replaces its last brace. */
  readonly tail: string
}

function link(parent: Node, node: Node, child: Child): void {
  if (node.id !== undefined) {
    child.reference.referencedId = node.id
    return
  }
  node.references.push(child.reference)
  node.parents.push(parent)
  parent.waitsFor += 1
}

function refusal(path: string, rule: string): ClientError {
  return new ClientError('invalid_value', `the value at ${quoted(path === '' ? '(root)' : path, 200)} ${rule}`)
}
