import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { RunExecutor } from '../../../src/automation-server/index.ts'
import type { Annotation } from '../../../src/automation/index.ts'
import { inProcess } from '../../automation-server/support.ts'
import { everyKind } from '../../pages/kinds.ts'
import { type Paged, paged, type PagedOptions, withVersion } from '../../pages/support.ts'

export const ARTIFACT = { name: 'Walls – réviewed.csv', text: 'wall;fire rating\nW1;F30\n' }

/** Where a run waits until it is told to go on. */
export class Gate {
  readonly opened: Promise<void>
  #open: () => void = () => undefined

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#open()
  }
}

function annotation(
  level: Annotation['level'],
  category: string,
  message: string,
  objects: readonly string[],
): Annotation {
  return {
    level,
    category,
    message,
    objectAppIds: Object.fromEntries(objects.map((id, at) => [id, at % 2 === 0 ? `wall-${at}` : null])),
    metadata: level === 'ERROR' ? { expected: 'F30', found: null } : null,
  }
}

const IDS = Array.from({ length: 12 }, (_, at) => at.toString(16).padStart(2, '0').repeat(16))

/**
 * Reports everything that the page of a run can show: half of it at once, the rest when `gate` is opened. Then it makes
 * a file and a version.
 */
export function showingEverything(gate: Gate): RunExecutor {
  return inProcess(async ({ backend, projectId, run: { modelId } }, stopped) => {
    const atMs = Date.now()
    await backend.report({
      sequence: 1,
      status: 'running',
      progress: { fraction: 0.4, message: 'Looking at walls' },
      logs: [
        { atMs, level: 'info', message: 'Got 5 walls' },
        { atMs, level: 'warn', message: 'W4 has no material' },
      ],
      annotations: [
        annotation('ERROR', 'Fire rating', 'These walls have no fire rating.', IDS),
        annotation('SUCCESS', 'Fire rating', 'These walls have one.', IDS.slice(0, 2)),
      ],
    })
    if ((await Promise.race([gate.opened, stopped])) !== undefined) return
    const content = Buffer.from(ARTIFACT.text)
    await backend.storeArtifact({
      name: ARTIFACT.name,
      content: pieces(content),
      sizeBytes: content.length,
      idempotencyKey: 'file',
    })
    await backend.createVersion({
      projectId,
      modelId,
      rootObjectId: 'root',
      message: 'Levels renamed',
      idempotencyKey: 'version',
    })
    await backend.report({
      sequence: 2,
      status: 'succeeded',
      message: '4 of 5 walls have what they need.',
      progress: { fraction: 1 },
      logs: [{ atMs, level: 'error', message: 'W4 was left out' }],
      annotations: [
        annotation('WARNING', 'Materials', 'This wall has no material.', IDS.slice(3, 4)),
        annotation('INFO', 'Materials', 'These are of concrete.', IDS.slice(5)),
      ],
    })
  })
}

async function* pieces(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}

export interface PagesSite extends Paged {
  readonly url: string
  readonly modelId: string
  readonly versionId: string
}

/** A server with pages, a project `p` with a model, and a function that shows everything. It ends with the test. */
export async function pagesSite(
  t: TestContext,
  { gate = new Gate(), ...options }: PagedOptions & { readonly gate?: Gate } = {},
): Promise<PagesSite> {
  const parts = paged(t, { functions: [everyKind(showingEverything(gate))], ...options })
  const server = createServer(parts.service.node)
  const listening = once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  await listening
  return { ...parts, ...(await withVersion(parts)), url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
