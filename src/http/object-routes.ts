import { checkObjectId, checkProjectId } from '../object/id.ts'
import type { Operation, PathParams } from './exchange.ts'
import type { Resource } from './router.ts'

/** The six endpoints about objects, by the names under which `service.endpoints` has them. */
export type EndpointName = 'diff' | 'upload' | 'single' | 'list' | 'graph' | 'stream'

/** The decoded values of an endpoint's path. */
export interface Params {
  /** The project. */
  readonly projectId: string
  /** Only in the paths of `single` and `graph`. */
  readonly objectId?: string
}

/** The method and the path of an endpoint, below the prefix, such as `/objects/:projectId`. */
export interface Route {
  /** The method. */
  readonly method: 'GET' | 'POST'
  /** The path, with `:name` for each parameter. */
  readonly path: string
}

/** Exactly the contract's paths, and the one that newer clients stream lists from. */
export const OBJECT_ROUTES: { readonly [E in EndpointName]: Route } = {
  diff: { method: 'POST', path: '/api/diff/:projectId' },
  upload: { method: 'POST', path: '/objects/:projectId' },
  single: { method: 'GET', path: '/objects/:projectId/:objectId/single' },
  list: { method: 'POST', path: '/api/getobjects/:projectId' },
  graph: { method: 'GET', path: '/objects/:projectId/:objectId' },
  stream: { method: 'POST', path: '/api/v2/projects/:projectId/object-stream' },
}

export function objectResources<H>(operations: { readonly [E in EndpointName]: Operation<H> }): {
  readonly [E in EndpointName]: Resource<H>
} {
  const resource = (name: EndpointName): Resource<H> => {
    const { method, path } = OBJECT_ROUTES[name]
    return { path, operations: { [method]: operations[name] }, check: checkIds, slashAtEnd: name === 'stream' }
  }
  return Object.fromEntries(Object.keys(OBJECT_ROUTES).map((name) => [name, resource(name as EndpointName)])) as {
    readonly [E in EndpointName]: Resource<H>
  }
}

function checkIds({ projectId, objectId }: PathParams): void {
  checkProjectId(projectId)
  if (objectId !== undefined) checkObjectId(objectId)
}
