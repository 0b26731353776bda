import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { allCommands, commandTree } from '../../src/cli/completion/command-tree.ts'
import { createProgram } from '../../src/cli/program.ts'
import { stowage } from '../cli/command.ts'
import { temporaryFolder } from '../support/folder.ts'

type Shell = 'bash' | 'zsh' | 'fish'

/** Keys after the word `stowage`, Tab among them, and the arguments that the command then gets. */
const TYPED: readonly (readonly [keys: string, args: readonly string[]])[] = [
  ['upl\t', ['upload']],
  ['project rem\t', ['project', 'remove']],
  ['serve --storag\tle\t', ['serve', '--storage', 'level']],
  ['serve --storage=le\t', ['serve', '--storage=level']],
  ['token --acc\twr\t', ['token', '--access', 'write']],
  ['token iss\t--acc\tre\t', ['token', 'issue', '--access', 'read']],
  ['upload --project token --batch\t7', ['upload', '--project', 'token', '--batch-bytes', '7']],
  ['upload mod\t', ['upload', 'model one.json']],
  ['download x -o mod\t', ['download', 'x', '-o', 'model one.json']],
  ['serve --data da\t', ['serve', '--data', 'data folder/']],
  ['completion fi\t', ['completion', 'fish']],
]

/**
 * How each shell is started without the user's settings, and told of the script, the prompt and a command that writes
 * its arguments down.
 */
const SHELLS: Record<'bash' | 'zsh', { readonly start: string; readonly setUp: (script: string) => string }> = {
  bash: {
    start: 'bash --norc --noprofile -i',
    setUp: (script) => `source ${script}; stowage() { printf '%s\\0' "$@" > part; mv part args; }; PS1='REA''DY>'`,
  },
  zsh: {
    start: 'zsh -f -i',
    setUp: (script) =>
      `autoload -Uz compinit; compinit -D; source ${script}; stowage() { printf '%s\\0' "$@" > part; mv part args }; PS1='REA''DY>'`,
  },
}

/** A folder with the script of a shell, and something to complete. */
async function folderFor(t: TestContext, shell: Shell): Promise<string> {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'data folder'))
  for (const name of ['data.txt', 'model one.json']) writeFileSync(join(folder, name), '')
  const { code, stdout, stderr } = await stowage(['completion', shell])
  assert.deepEqual([code, stderr], [0, ''])
  writeFileSync(join(folder, 'script'), stdout)
  return folder
}

for (const shell of ['bash', 'zsh'] as const) {
  test(`${shell} completes words at a terminal`, async (t) => {
    const folder = await folderFor(t, shell)
    const { start, setUp } = SHELLS[shell]
    const terminal = spawn('script', ['-qec', start, '/dev/null'], {
      cwd: folder,
      env: { ...process.env, TERM: 'dumb', HISTFILE: '' },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    t.after(() => terminal.kill('SIGKILL'))
    let screen = ''
    terminal.stdout.setEncoding('utf8').on('data', (piece: string) => (screen += piece))
    const prompt = async (): Promise<void> => {
      while (!screen.includes('READY>')) await once(terminal.stdout, 'data', { signal: AbortSignal.timeout(20_000) })
      screen = ''
    }
    const args = join(folder, 'args')
    terminal.stdin.write(`${setUp(join(folder, 'script'))}\n`)
    for (const [keys, expected] of TYPED) {
      await prompt()
      terminal.stdin.write(`stowage ${keys}\n`)
      while (!existsSync(args)) await once(terminal.stdout, 'data', { signal: AbortSignal.timeout(20_000) })
      assert.deepEqual(
        words(readFileSync(args, 'utf8').split('\0').slice(0, -1)),
        words(expected),
        `${keys}: ${screen}`,
      )
      rmSync(args)
    }
    terminal.stdin.write('exit\n')
    await once(terminal, 'exit')
  })
}

/** Zsh puts a sign of equality between a flag and its value, where others put a space, and no slash after a folder. */
function words(args: readonly string[]): readonly string[] {
  return args.flatMap((arg) => (arg.startsWith('--') ? arg.split('=') : [arg.replace(/\/$/, '')]))
}

test('fish completes words', async (t) => {
  const folder = await folderFor(t, 'fish')
  for (const [keys, expected] of TYPED.filter(([, args]) => !args.at(-1)?.match(/^\d/))) {
    const last = expected[expected.length - 1]
    const line = [...expected.slice(0, -1), keys.trimEnd().split(/[ \t]/).at(-1)].join(' ')
    assert.deepEqual(inFish(folder, [`stowage ${line}`]), [[last]], line)
  }
})

test('fish and bash know each command and option, and nothing else', async (t) => {
  const root = commandTree(await createProgram())
  const commands = allCommands(root)
  assert.ok(commands.length > 15, 'the tree is that of the whole command')
  const bash = await folderFor(t, 'bash')
  const fish = await folderFor(t, 'fish')
  const flagsInFish = inFish(
    fish,
    commands.map(({ path }) => `${path} -`),
  )
  const namesInFish = inFish(
    fish,
    commands.map(({ path }) => `${path} `),
  )
  for (const [at, { path, commands: below, options, arguments: args }] of commands.entries()) {
    const flags = options.flatMap((option) => option.flags)
    assert.deepEqual(flagsInFish[at].toSorted(), flags.toSorted(), path)
    assert.deepEqual(inBash(bash, `${path} -`).toSorted(), flags.toSorted(), path)
    const [words] = args.map(({ values }) => (values.kind === 'words' ? values.words : []))
    const names = [...below.map(({ name }) => name), ...(words ?? [])].toSorted()
    const kind = args[0]?.values.kind
    if (kind === 'files' || kind === 'folders') continue
    assert.deepEqual(namesInFish[at].toSorted(), names, path)
    assert.deepEqual(inBash(bash, `${path} `).toSorted(), names, path)
  }
})

test('an unknown shell is refused with the known ones', async () => {
  const { code, stderr } = await stowage(['completion', 'tcsh'])
  assert.equal(code, 2)
  assert.match(stderr, /'tcsh' is invalid .* bash, zsh, fish/)
})

/** What fish offers for each line. */
function inFish(folder: string, lines: readonly string[]): readonly (readonly string[])[] {
  const asked = lines.map((line) => `complete -C '${line}'; echo ---`).join('; ')
  const said = execFileSync('fish', ['--no-config', '-c', `source script; ${asked}`], { cwd: folder, encoding: 'utf8' })
  return said
    .split('---\n')
    .slice(0, -1)
    .map((part) =>
      part
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.split('\t')[0]),
    )
}

/** What the function of bash finds for a line. */
function inBash(folder: string, line: string): readonly string[] {
  const words = line.split(' ')
  const state = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}`
  const said = execFileSync('bash', ['-c', `source ./script; ${state}; _stowage; printf '%s\\n' "\${COMPREPLY[@]}"`], {
    cwd: folder,
    encoding: 'utf8',
  })
  return said.split('\n').filter((one) => one !== '')
}
