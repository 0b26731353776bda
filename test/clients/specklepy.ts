import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Target } from '../../bench/upload.ts'
import { readLines, required, runClient } from './support.ts'
import { temporaryFolder } from '../support/folder.ts'

/**
 * The Python client, unchanged: the version of today, and the last one of the line before, which splits lines at more
 * characters than LF.
 */
export const SPECKLEPY: Readonly<Record<'current' | 'older', string>> = { current: '2026.9.1', older: '2.23.0' }

export type Specklepy = keyof typeof SPECKLEPY

export interface RoundTrip {
  readonly version: string
  readonly root: string
  /** Whether the value that it built of what came equals the one that it made for sending. */
  readonly same?: boolean
  /** The texts that it sent or received, by id. */
  readonly objects: ReadonlyMap<string, string>
}

export interface RoundTripOptions {
  /** Elements of the building that it sends, or that it expects; four objects each. */
  readonly elements?: number
  readonly root?: string
}

export async function roundTrip(
  context: TestContext,
  client: Specklepy,
  action: 'send' | 'receive',
  { url, token, projectId }: Target,
  { elements, root }: RoundTripOptions,
): Promise<RoundTrip> {
  const folder = temporaryFolder(context)
  const python = join(
    required('STOWAGE_TEST_SPECKLEPY', 'the folder with the virtual environments current and older'),
    client,
    'bin',
    'python3',
  )
  const objects = join(folder, 'objects')
  const printed = await runClient(python, [join(import.meta.dirname, 'specklepy', 'round_trip.py')], {
    ACTION: action,
    URL: url,
    TOKEN: token,
    PROJECT: projectId,
    OBJECTS: objects,
    ...(elements === undefined ? {} : { ELEMENTS: String(elements) }),
    ...(root === undefined ? {} : { ROOT: root }),
    // Its accounts and caches are looked for there, so that those of whoever runs this stay out of it.
    SPECKLE_USERDATA_PATH: folder,
    HOME: folder,
    XDG_CONFIG_HOME: folder,
  })
  return { ...(JSON.parse(printed) as Omit<RoundTrip, 'objects'>), objects: await readLines(objects) }
}
