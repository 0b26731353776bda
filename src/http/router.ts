import { StowageError } from '../errors.ts'
import { checkObjectId, checkProjectId, quoted } from '../object/id.ts'

export type EndpointName = 'diff' | 'upload' | 'single' | 'list' | 'graph' | 'stream'

/** What a path names, decoded. */
export interface Params {
  readonly projectId: string
  /** Only in the paths of `single` and `graph`. */
  readonly objectId?: string
}

export interface Route {
  readonly name: EndpointName
  readonly method: 'GET' | 'POST'
  /** The path below the prefix as Express, Koa's router, Fastify and Hono write it. */
  readonly path: string
  /** The value of `Allow` (RFC 9110 section 10.2.1). */
  readonly allow: string
}

export interface Match {
  readonly route: Route
  /** The segments that stand for parameters, still percent-encoded. */
  readonly rawParams: readonly string[]
}

const GET_ALLOW = 'GET, HEAD, OPTIONS'
const POST_ALLOW = 'POST, OPTIONS'

/** Exactly the contract's paths, and the one that newer clients stream lists from. */
export const ROUTES: { readonly [E in EndpointName]: Route } = {
  diff: { name: 'diff', method: 'POST', path: '/api/diff/:projectId', allow: POST_ALLOW },
  upload: { name: 'upload', method: 'POST', path: '/objects/:projectId', allow: POST_ALLOW },
  single: { name: 'single', method: 'GET', path: '/objects/:projectId/:objectId/single', allow: GET_ALLOW },
  list: { name: 'list', method: 'POST', path: '/api/getobjects/:projectId', allow: POST_ALLOW },
  graph: { name: 'graph', method: 'GET', path: '/objects/:projectId/:objectId', allow: GET_ALLOW },
  stream: { name: 'stream', method: 'POST', path: '/api/v2/projects/:projectId/object-stream', allow: POST_ALLOW },
}

const SHAPES: readonly { readonly route: Route; readonly segments: readonly string[] }[] = Object.values(ROUTES).map((route) => ({
  route,
  segments: route.path.slice(1).split('/'),
}))

/** A leading slash, none at the end, or nothing. Throws `TypeError` for a prefix that no path could start with. */
export function normalizePrefix(prefix = ''): string {
  const trimmed = prefix.replace(/^\/+|\/+$/g, '')
  if (/[?#\s]/.test(trimmed)) throw new TypeError(`prefix ${quoted(prefix)} is not the start of a path: it holds '?', '#' or white space`)
  return trimmed === '' ? '' : `/${trimmed}`
}

/** What of a path belongs to the host above a mount: its literal beginning, or so many segments, which the host's own router has matched. */
export type MountPoint = string | number

/** The rest of a raw path below a mount point; `undefined` for a path that is not below it. */
export function pathBelow(path: string, mountPoint: MountPoint): string | undefined {
  if (typeof mountPoint === 'string') return path.startsWith(`${mountPoint}/`) ? path.slice(mountPoint.length) : undefined
  let end = 0
  for (let segment = 0; segment < mountPoint && end !== -1; segment++) end = path.indexOf('/', end + 1)
  return end === -1 ? undefined : path.slice(end)
}

/** The route of a raw path. Splits first and decodes nothing, so that no id, whatever it is, can be taken for a part of the path. */
export function matchPath(path: string, prefix: string): Match | undefined {
  if (!path.startsWith(`${prefix}/`)) return undefined
  const segments = path.slice(prefix.length + 1).split('/')
  if (segments.at(-1) === '' && segments.at(-2) === 'object-stream') segments.pop()
  for (const shape of SHAPES) {
    if (fits(shape.segments, segments)) {
      return { route: shape.route, rawParams: segments.filter((_, at) => shape.segments[at].startsWith(':')) }
    }
  }
  return undefined
}

/** Whether the end of a raw path fits a route, whatever it is mounted under. */
export function endsLike(path: string, routePath: string): boolean {
  const shape = routePath.slice(1).split('/')
  return fits(shape, path.split('/').slice(-shape.length))
}

/** Each segment decoded once. Throws `invalid_request` for bad percent-encoding, `invalid_id` for what cannot be an id. */
export function decodeParams(match: Match): Params {
  const [projectId, objectId] = match.rawParams.map((raw) => decodeSegment(raw))
  return checkParams({ projectId, ...(objectId === undefined ? {} : { objectId }) })
}

export function checkParams(params: Params): Params {
  checkProjectId(params.projectId)
  if (params.objectId !== undefined) checkObjectId(params.objectId)
  return params
}

function fits(shape: readonly string[], segments: readonly string[]): boolean {
  return shape.length === segments.length && shape.every((part, at) => (part.startsWith(':') ? segments[at] !== '' : part === segments[at]))
}

function decodeSegment(raw: string): string {
  try {
    return decodeURIComponent(raw)
  } catch (cause) {
    throw new StowageError('invalid_request', `the path's segment ${quoted(raw)} is not percent-encoded UTF-8`, { cause })
  }
}
