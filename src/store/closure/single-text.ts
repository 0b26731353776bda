import type { TextOptions } from '../../object/graph-store.ts'
import type { RecordStore } from '../../storage/backend.ts'
import type { LineReader } from '../pack/line-reader.ts'
import { placedLine } from '../pack/line-places.ts'
import { readObjects } from '../records/locator.ts'
import type { PackCatalog } from '../records/pack-catalog.ts'
import { viewProject } from '../records/projects.ts'

export interface SingleTextParts {
  readonly records: RecordStore
  readonly catalog: PackCatalog
  readonly lines: LineReader
}

/**
 * The text of one object, read by the place in its record; `undefined` if it is not held. The lease covers the text.
 * Throws `corrupt_data` if the line is not the one that the record says.
 */
export async function readSingleText(
  { records, catalog, lines }: SingleTextParts,
  projectId: string,
  id: Uint8Array,
  { signal, memory }: TextOptions,
): Promise<Uint8Array | undefined> {
  const project = await viewProject(records, projectId, signal)
  if (project === undefined) return undefined
  const [record] = await readObjects(records, project, [id], signal)
  if (record === undefined) return undefined
  await memory?.hold(record.textBytes)
  try {
    const { source } = await catalog.packOfAnyLayout(project, record.sequence)
    const line = await lines.read(placedLine(source, id, record), signal)
    return line.subarray(id.length + 1, -1)
  } catch (error) {
    throw await catalog.reasonOf(error, project)
  }
}
