import { join } from 'node:path'
import { download } from '../download.ts'
import { building } from '../model/building.ts'
import { issueToken } from '../server.ts'
import type { RunningServer } from '../server-process.ts'
import { uploadModel } from '../upload.ts'
import type { BoundOptions } from './bound.ts'
import { whileServing } from './serving.ts'

const OBJECTS = 100_000

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
    await download(urlOf(server, planned), headers)
    // The length of the answer, which comes with its plan.
    await fetch(urlOf(server, planned), { method: 'HEAD', headers })
    return planned
  })
}

export function urlOf({ url }: RunningServer, { projectId, rootId }: Planned): string {
  return `${url}/objects/${projectId}/${rootId}`
}

export function titleOf({ profile, objects = OBJECTS, rounds }: BoundOptions): string {
  return `${profile}, ${objects} objects, median (min to max) of ${rounds}`
}
