import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { COMMAND, startServer, stowage } from '../cli/command.ts'
import { blocksOf } from '../docs/blocks.ts'
import { buildModel, jsonArray } from '../support/model.ts'
import { temporaryFolder } from '../support/folder.ts'

/*
 * The transcripts of docs/command-line.md: each command that it shows is run, in order, on one server, and prints what the page shows.
 * Ids, numbers, sizes and times differ from those of the page, and its root stands for the one here.
 */

const run = promisify(execFile)
const PAGE = 'docs/command-line.md'
const SHOWN_ROOT = '1f78aa9773006a55b53ee10429842fa9'

const ASKS_SERVER = /^stowage (?:upload|download|has|get|ls|version|model) /
/** The page shows what happens without a server, too. */
const NO_SERVER =
  'stowage: --url is missing: give the address of the service, or set STOWAGE_URL; --data <folder> takes a folder of this machine instead (see "stowage get --help")'

interface Step {
  readonly command: string
  readonly shown: readonly string[]
}

/** The commands of a block, each with what it prints. */
function stepsOf(text: string): Step[] {
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [command, ...shown] = step.trimEnd().split('\n')
      return { command: command.replace(/\s+#.*$/, ''), shown }
    })
}

/** A text without what differs each time. */
function masked(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/\b[0-9a-f]{32}\b/g, '<id>')
    .replaceAll(/\d[\d,.]*( (?:B|KB|MB|GB))?/g, (_, unit: string | undefined) =>
      unit === undefined ? '<n>' : '<size>',
    )
    .replaceAll(/ +/g, ' ')
}

const folder = temporaryFolder()
const env: NodeJS.ProcessEnv = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
const MODEL = { objects: 300, seed: 7 }
const model = buildModel(MODEL)
const changed = buildModel({ ...MODEL, revision: 1, changed: 0.02 })

function writeFiles(): void {
  mkdirSync(join(folder, 'bin'))
  const command = [process.execPath, ...COMMAND].map((word) => `'${word}'`).join(' ')
  writeFileSync(join(folder, 'bin', 'stowage'), `#!/bin/sh\nexec ${command} "$@"\n`)
  chmodSync(join(folder, 'bin', 'stowage'), 0o755)
  writeFileSync(join(folder, 'model.json'), jsonArray(model.objects))
  writeFileSync(join(folder, 'model.json.gz'), gzipSync(jsonArray(model.objects)))
  writeFileSync(join(folder, 'v2.json'), jsonArray(changed.objects))
  writeFileSync(join(folder, 'checker.py'), 'print("no function")\n')
}

/** What a command prints, in the order of its lines. */
async function output(command: string): Promise<readonly string[]> {
  const pasted = command.replaceAll(SHOWN_ROOT, model.rootId)
  const { stdout } = await run('bash', ['-c', `(\n${pasted}\n) 2>&1 || true`], { cwd: folder, env })
  return stdout.trimEnd().split('\n')
}

test('the transcripts of the command-line page equal the output of the command', async (t) => {
  writeFiles()
  const data = join(folder, 'data')
  let running: Awaited<ReturnType<typeof startServer>> | undefined
  const serve = async (): Promise<readonly string[]> => {
    running = await startServer(t, ['--data', data])
    const [, url] = / on (\S+)/.exec(running.line) ?? []
    const token = (await stowage(['token', '--data', data, '--project', 'demo', '--access', 'write'])).stdout.trim()
    Object.assign(env, { STOWAGE_URL: url, STOWAGE_PROJECT: 'demo', STOWAGE_TOKEN: token })
    return [running.line]
  }
  const stop = async (): Promise<void> => {
    await running?.stop()
    running = undefined
  }
  for (const { text, language } of blocksOf(PAGE)) {
    if (language !== '') continue
    for (const { command, shown } of stepsOf(text)) {
      const [first = ''] = shown
      const isServer = first.startsWith('stowage serves ')
      if (/ (?:check|ls|reindex) .*--data /.test(command)) await stop()
      else if (running === undefined && ASKS_SERVER.test(command) && first !== NO_SERVER) await serve()
      const printed = isServer ? await serve() : await output(command)
      const expected = isServer ? shown.slice(0, 1).map((line) => line.replace('./data', data)) : shown
      // Behind a pipe, what goes to the terminal at once may come before what goes through it.
      const ordered = (lines: readonly string[]): readonly string[] =>
        command.includes(' | ') ? lines.map(masked).toSorted() : lines.map(masked)
      assert.deepEqual(ordered(printed), ordered(expected), command)
    }
  }
  await stop()
})
