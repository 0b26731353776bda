import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { levelBackend } from '../../adapters/level/index.ts'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { createObjectService, openAccess, type StorageBackend } from '../../src/index.ts'
import type { Input } from './input.ts'
import type { Step } from './steps.ts'

const PROJECT = 'micro'
const LOOK_UP_IDS = 1_000

export interface BackendSteps {
  readonly steps: readonly Step[]
  close(): Promise<void>
}

/** Steps of a whole service in this process, once on each embedded backend. */
export async function createBackendSteps(input: Input): Promise<BackendSteps> {
  const folder = mkdtempSync(join(tmpdir(), 'stowage-micro-'))
  const backends: Readonly<Record<string, StorageBackend>> = {
    memory: memoryBackend(),
    level: levelBackend({ path: join(folder, 'level') }),
    filesystem: filesystemBackend({ path: join(folder, 'filesystem') }),
  }
  const made = await Promise.all(
    Object.entries(backends).map(async ([kind, backend]) => await open(kind, backend, input)),
  )
  return {
    steps: made.flatMap(({ steps }) => steps),
    close: async () => {
      await Promise.all(made.map(async (each) => await each.close()))
      rmSync(folder, { recursive: true })
    },
  }
}

async function open(kind: string, backend: StorageBackend, { gzipped, ids }: Input): Promise<BackendSteps> {
  const service = createObjectService({ backend, access: openAccess() })
  const project = service.project(PROJECT)
  await project.upload(Readable.from([gzipped]), 'application/gzip')
  const rootId = ids[ids.length - 1]
  const download = async (coding: 'gzip' | 'identity'): Promise<void> => {
    for await (const _ of project.createGraphStream(rootId, { format: 'text', coding }));
  }
  const some = Array.from({ length: LOOK_UP_IDS }, (_, at) => ids[(at * 7_919) % ids.length])
  const steps: readonly Step[] = [
    { name: `recursive, gzip, ${kind}`, run: async () => await download('gzip') },
    { name: `recursive, identity, ${kind}`, run: async () => await download('identity') },
    {
      name: `record look-ups, ${kind}`,
      amount: LOOK_UP_IDS,
      unit: 'ids/s',
      run: async () => {
        await project.has(some)
      },
    },
  ]
  return { steps, close: async () => await service.close() }
}
