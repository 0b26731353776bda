import { StowageError } from '../errors.ts'
import { quoted } from '../object/id.ts'
import type { Operation, PathParams } from './exchange.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A path and its operations. `HEAD` comes with `GET`, `OPTIONS` with all. */
export interface Resource<H> {
  /** Below the prefix, as Express, Koa's router, Fastify and Hono write it, such as `/objects/:projectId`. */
  readonly path: string
  readonly operations: { readonly [M in Method]?: Operation<H> }
  /** Throws `invalid_id` for invalid parameters. */
  readonly check?: (params: PathParams) => void
  /** Takes the path with a slash at its end as well. */
  readonly slashAtEnd?: boolean
}

export interface Match<H> {
  readonly resource: Resource<H>
  readonly params: readonly RawParam[]
}

interface RawParam {
  readonly name: string
  /** The segment, still percent-encoded. */
  readonly value: string
}

interface Shape<H> {
  readonly resource: Resource<H>
  readonly segments: readonly string[]
}

/** The resources below a prefix. The first one whose path fits is taken. */
export class RouteTable<H> {
  /** The prefix of all paths: `''`, or as in `/models`. */
  readonly prefix: string
  readonly #resources: readonly Resource<H>[]
  /** By the number of their segments, in the order of the resources. */
  readonly #shapes: ReadonlyMap<number, readonly Shape<H>[]>

  /** Throws `TypeError` for a prefix that no path could start with. */
  constructor(resources: readonly Resource<H>[], prefix: string | undefined) {
    this.prefix = normalizePrefix(prefix)
    this.#resources = resources
    const shapes = new Map<number, Shape<H>[]>()
    for (const shape of resources.flatMap((resource) => shapesOf(resource))) {
      const { length } = shape.segments
      shapes.set(length, [...(shapes.get(length) ?? []), shape])
    }
    this.#shapes = shapes
  }

  /** The literal first parts of all paths, without the prefix, for hosts whose own router has to know them. */
  get pathPrefixes(): readonly string[] {
    const literal = this.#resources.map(({ path }) => (path.includes(':') ? path.slice(0, path.indexOf(':')) : path))
    return [...new Set(literal)]
  }

  /** The resource of a raw path. It splits first and decodes nothing, so no id can be taken for a part of the path. */
  match(path: string): Match<H> | undefined {
    if (!path.startsWith(`${this.prefix}/`)) return undefined
    const segments = segmentsOf(path.slice(this.prefix.length))
    const shape = this.#shapes.get(segments.length)?.find((one) => fits(one.segments, segments))
    return shape && { resource: shape.resource, params: paramsOf(shape.segments, segments) }
  }
}

function shapesOf<H>(resource: Resource<H>): Shape<H>[] {
  const segments = segmentsOf(resource.path)
  const shape = { resource, segments }
  return resource.slashAtEnd === true ? [shape, { resource, segments: [...segments, ''] }] : [shape]
}

function paramsOf(shape: readonly string[], segments: readonly string[]): RawParam[] {
  const params: RawParam[] = []
  for (const [at, part] of shape.entries())
    if (part.startsWith(':')) params.push({ name: part.slice(1), value: segments[at] })
  return params
}

/** The value of `Allow` (RFC 9110 section 10.2.1). */
export function allowOf(resource: Pick<Resource<never>, 'operations'>): string {
  const methods = Object.keys(resource.operations)
  return [...methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])), 'OPTIONS'].join(', ')
}

/** A leading slash, none at the end, or nothing. Throws `TypeError` for a prefix that no path could start with. */
export function normalizePrefix(prefix = ''): string {
  const trimmed = prefix.replace(/^\/+|\/+$/g, '')
  if (/[?#\s]/.test(trimmed))
    throw new TypeError(`prefix ${quoted(prefix)} is not the start of a path: it contains '?', '#' or white space`)
  return trimmed === '' ? '' : `/${trimmed}`
}

/**
 * The part of a path that belongs to the host above a mount: its literal beginning, or a number of segments, which the
 * host's own router has matched.
 */
export type MountPoint = string | number

/** The rest of a raw path below a mount point; `undefined` for a path that is not below it. */
export function pathBelow(path: string, mountPoint: MountPoint): string | undefined {
  if (typeof mountPoint === 'string')
    return path.startsWith(`${mountPoint}/`) ? path.slice(mountPoint.length) : undefined
  let end = 0
  for (let segment = 0; segment < mountPoint && end !== -1; segment++) end = path.indexOf('/', end + 1)
  return end === -1 ? undefined : path.slice(end)
}

/** Whether the end of a raw path matches a resource's, under any mount. */
export function matchesPathEnd(path: string, resourcePath: string): boolean {
  const shape = segmentsOf(resourcePath)
  return fits(shape, path.split('/').slice(-shape.length))
}

/** Each segment decoded once. Throws `invalid_request` for bad percent-encoding. */
export function decodeParams(match: Match<never>): PathParams {
  const params: Record<string, string> = {}
  for (const { name, value } of match.params) params[name] = decodeSegment(value)
  return params
}

function segmentsOf(path: string): string[] {
  return path.slice(1).split('/')
}

function fits(shape: readonly string[], segments: readonly string[]): boolean {
  return (
    shape.length === segments.length &&
    shape.every((part, at) => (part.startsWith(':') ? segments[at] !== '' : part === segments[at]))
  )
}

function decodeSegment(raw: string): string {
  if (!raw.includes('%')) return raw
  try {
    return decodeURIComponent(raw)
  } catch (cause) {
    throw new StowageError('invalid_request', `the path's segment ${quoted(raw)} is not percent-encoded UTF-8`, {
      cause,
    })
  }
}
