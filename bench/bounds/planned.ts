import { join } from 'node:path'
import { download } from '../download.ts'
import { building } from '../model/building.ts'
import { issueToken } from '../server.ts'
import type { RunningServer } from '../server-process.ts'
import { uploadModel } from '../upload.ts'
import type { BoundOptions } from './bound.ts'
import { whileServing } from './serving.ts'

const OBJECTS = 100_000
/** Each waits for half a second. */
const PLAN_TRIES_MAX = 100

/** A model whose download has a plan. */
export interface Planned {
  readonly data: string
  readonly projectId: string
  readonly rootId: string
  readonly headers: Readonly<Record<string, string>>
}

export async function plannedModel(
  { profile, objects = OBJECTS, folder }: Pick<BoundOptions, 'profile' | 'objects' | 'folder'>,
  projectId: string = 'downloads',
): Promise<Planned> {
  const data = join(folder, 'data')
  return await whileServing(data, async (server) => {
    const token = await issueToken(data, '*')
    const model = building({ objects, closure: 'root-less', profile })
    const { rootId } = await uploadModel({ url: server.url, token, projectId }, model)
    const headers = { Authorization: `Bearer ${token}`, Accept: 'text/plain', 'Accept-Encoding': 'gzip' }
    const planned = { data, projectId, rootId, headers }
    await untilPlanned(urlOf(server, planned), headers)
    return planned
  })
}

/** Has the plan of a download made; resolves once its length is known, which comes with its plan. */
export async function untilPlanned(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  await download(url, headers)
  for (let tries = 0; tries < PLAN_TRIES_MAX; tries++)
    if ((await fetch(url, { method: 'HEAD', headers })).headers.has('content-length')) return
  throw new Error(`${new URL(url).pathname} has no plan`)
}

export function urlOf({ url }: RunningServer, { projectId, rootId }: Planned): string {
  return `${url}/objects/${projectId}/${rootId}`
}

export function titleOf({ profile, objects = OBJECTS, rounds }: BoundOptions): string {
  return `${profile}, ${objects} objects, median (min to max) of ${rounds}`
}
