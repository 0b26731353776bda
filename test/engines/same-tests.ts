import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type Ending, temporaryFolder } from '../support/folder.ts'
import type { SharedEngines, SharedUse } from '../support/several-servers.ts'
import { PostgresEngine } from './postgres-engine.ts'
import { startS3Engine } from './s3-engine.ts'

const RUNNER = fileURLToPath(new URL('../runner.ts', import.meta.url))
/** Nothing is lost here when PostgreSQL dies, and each test makes a schema. */
const SETTINGS = { fsync: 'off', max_connections: '500' }

/** How a run of tests on shared engines ended. */
export interface SharedRun {
  readonly passed: number
  readonly use: SharedUse
}

/**
 * Runs the test files whose paths contain one of the names, on three services over PostgreSQL and an S3 store. Tests of
 * `contract/` and `clients/` find nginx before them.
 */
export async function runOnSharedEngines(
  ending: Ending,
  names: readonly string[],
  settings: NodeJS.ProcessEnv = {},
): Promise<SharedRun> {
  const [postgres, { options: s3 }] = await Promise.all([
    PostgresEngine.start(ending, { settings: SETTINGS }),
    startS3Engine(ending),
  ])
  const useFile = join(temporaryFolder(ending), 'use')
  const engines: SharedEngines = { connectionString: postgres.url(), s3, useFile }
  const { NODE_TEST_CONTEXT: _context, STOWAGE_TEST_SECOND_TRY: _try, ...inherited } = process.env
  const child = spawn(process.execPath, ['--enable-source-maps', RUNNER, ...names], {
    env: { ...inherited, ...settings, STOWAGE_TEST_SHARED: JSON.stringify(engines) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  ending.after(() => void child.kill('SIGKILL'))
  const [said, complained, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ])
  const [, failures = said] = said.split('failing tests:')
  assert.equal(code, 0, `${failures.slice(0, 20_000)}\n${complained.slice(-2_000)}`)
  return { passed: Number(/^ℹ pass (\d+)$/m.exec(said)?.[1]), use: usedBy(useFile) }
}

function usedBy(useFile: string): SharedUse {
  const uses = readFileSync(useFile, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as SharedUse)
  return {
    storages: uses.reduce((sum, { storages }) => sum + storages, 0),
    calls: uses.reduce<number[]>((sums, { calls }) => calls.map((count, at) => count + (sums[at] ?? 0)), []),
    alone: uses.flatMap(({ alone }) => alone).toSorted(),
  }
}
