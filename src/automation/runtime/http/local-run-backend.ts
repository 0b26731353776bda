import { createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { basename, extname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Client } from '../../../client/client.ts'
import type { Annotation, RunFile, RunReport } from '../../author/run-data.ts'
import type { NewArtifact, NewVersion, RunBackend, TriggeringVersion } from '../run-backend.ts'

export interface LocalRunOptions {
  readonly client: Client
  /** The version in here is the one that the function runs on. */
  readonly runFile: RunFile
  /** The folder for files that the function stores. It is created with the first file. */
  readonly filesFolder: string
  readonly print: (line: string) => void
}

const NAMES_MAX = 1_000
/** Objects whose ids are shown of one annotation. */
const SHOWN_OBJECTS = 3

/**
 * A person's run on their own machine: the model and new versions are the server's, with the rights of the person's
 * token; everything else is printed.
 */
export function localRunBackend({ client, runFile, filesFolder, print }: LocalRunOptions): RunBackend {
  const { projectId, triggers } = runFile.automationRunData
  const { modelId, versionId } = triggers[0].payload
  return {
    client,
    triggeringVersion: async ({ signal } = {}): Promise<TriggeringVersion> => {
      const { rootObjectId, message } = await client
        .project(projectId)
        .versions.get(modelId, versionId, signal === undefined ? {} : { signal })
      return { modelId, versionId, rootObjectId, message }
    },
    report: async ({ annotations = [], progress }: RunReport): Promise<void> => {
      for (const annotation of annotations) print(annotationLine(annotation))
      if (progress !== undefined)
        print(`progress: ${Math.round(progress.fraction * 100)} % ${progress.message ?? ''}`.trimEnd())
    },
    createVersion: async (version: NewVersion, { signal } = {}): Promise<string> => {
      const { rootObjectId, message } = version
      const { id } = await client
        .project(version.projectId)
        .versions.create(version.modelId, { rootObjectId, message }, signal === undefined ? {} : { signal })
      print(`version: ${id} of model ${version.modelId} in project ${version.projectId}`)
      return id
    },
    storeArtifact: async ({ name, content }: NewArtifact, { signal } = {}): Promise<string> => {
      const path = await stored(filesFolder, name, content, signal)
      print(`file: ${path}`)
      return path
    },
  }
}

function annotationLine({ level, category, message, objectAppIds }: Annotation): string {
  const ids = Object.keys(objectAppIds)
  const more = ids.length > SHOWN_OBJECTS ? ` and ${ids.length - SHOWN_OBJECTS} more` : ''
  return `${level.toLowerCase()}: ${category}: ${message ?? ''} (${ids.slice(0, SHOWN_OBJECTS).join(', ')}${more})`
}

/** Under its display name without folders; an existing file stays. */
async function stored(
  folder: string,
  name: string,
  content: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<string> {
  await mkdir(folder, { recursive: true })
  const plain = basename(name.replaceAll('\\', '/'))
  const wanted = plain === '' || plain === '.' || plain === '..' ? 'file' : plain
  const ending = extname(wanted)
  const stem = wanted.slice(0, wanted.length - ending.length)
  for (let count = 1; ; count++) {
    const path = join(folder, count === 1 ? wanted : `${stem} (${count})${ending}`)
    try {
      await pipeline(Readable.from(content), createWriteStream(path, { flags: 'wx' }), ...(signal ? [{ signal }] : []))
      return path
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || count >= NAMES_MAX) throw error
    }
  }
}
