import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { REPOSITORY } from '../../bench/repository.ts'
import { temporaryFolder } from '../support/folder.ts'
import { codeBlocks } from '../support/markdown.ts'
import { engineProgram } from './s3-engine.ts'

const run = promisify(execFile)

/** What the page builds takes four minutes; `.ci/engines` has built the same version. */
const BUILD_OF_S3_STORE = /^GOBIN=.*\/versitygw@v(.+)$/m

async function asPostgres(statement: string): Promise<string> {
  return (await run('sudo', ['-u', 'postgres', 'psql', '-At', '-c', statement], { cwd: '/' })).stdout.trim()
}

/** Debian starts PostgreSQL when it is installed or the machine boots, but not in a container. */
async function startPostgres(t: TestContext): Promise<void> {
  const { stdout } = await run('pg_lsclusters', ['--no-header'])
  const [version, name, port, status] = (stdout.split('\n').at(0) ?? '').split(/\s+/)
  assert.equal(port, '5432', `the commands of the page are for the first cluster of Debian: ${stdout}`)
  if (status !== 'down') return
  await run('sudo', ['pg_ctlcluster', version, name, 'start'])
  t.after(async () => void (await run('sudo', ['pg_ctlcluster', version, name, 'stop', '--force'])))
}

async function removeDatabase(): Promise<void> {
  await asPostgres('DROP DATABASE IF EXISTS stowage WITH (FORCE)')
  await asPostgres('DROP ROLE IF EXISTS stowage')
}

/** The sources as they are here, like a clone: without what is installed and built. */
async function sourcesIn(t: TestContext): Promise<string> {
  const folder = join(temporaryFolder(t), 'stowage')
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: REPOSITORY,
    maxBuffer: 16 * 1_048_576,
  })
  for (const path of stdout.split('\0').filter((path) => path !== ''))
    await cp(join(REPOSITORY, path), join(folder, path))
  return folder
}

/** Runs the commands as one script, and ends whatever they leave behind if they fail. */
async function runCommands(
  commands: string,
  folder: string,
): Promise<{ readonly code: number | null; readonly said: string; readonly complained: string }> {
  const file = join(folder, '..', 'commands.sh')
  await writeFile(file, `set -e\n${commands}`)
  const child = spawn('bash', [file], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = (await once(child, 'exit')) as [number | null]
  kill(-(child.pid ?? 0), 'SIGKILL')
  // A killed one could not end its worker, which would keep the output open.
  kill(Number(await readFile(join(folder, '..', 'stowage-cluster', 'nginx.pid'), 'utf8').catch(() => '0')), 'SIGTERM')
  const [said, complained] = await output
  return { code, said, complained }
}

test('the commands of the page lead from one folder to three servers behind nginx', async (t) => {
  const commands = await codeBlocks('cluster.md', 'sh', 'From one folder to three servers')
  const script = commands.join('\n').replace(BUILD_OF_S3_STORE, (_, version: string) => {
    assert.ok(engineProgram('versitygw').includes(version), 'the page builds the version of the tests')
    return `cp ${engineProgram('versitygw')} .`
  })
  await startPostgres(t)
  assert.equal(await asPostgres("SELECT count(*) FROM pg_roles WHERE rolname = 'stowage'"), '0')
  try {
    const { code, said, complained } = await runCommands(script, await sourcesIn(t))
    const told = `${said.slice(-4_000)}\n${complained.slice(-4_000)}`
    assert.equal(code, 0, told)
    assert.match(said, /\{"id":"room","name":"Kitchen"\}/, told)
    assert.match(said, /demo/, told)
  } finally {
    await removeDatabase()
  }
})

/** A negative number is a whole group. */
function kill(pid: number, signal: 'SIGKILL' | 'SIGTERM'): void {
  if (pid === 0) return
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
