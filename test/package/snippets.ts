import { execFile, spawn } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

/*
 * `tsx test/package/snippets.ts PROJECT`: takes the TypeScript of README and docs out of the package that is installed in the project, compiles each piece
 * there under the strictest settings, and runs those that are whole programs. What a piece takes from the host around it is declared in `context.ts.txt`:
 * values only, so that each piece imports what it uses of the package.
 */

const run = promisify(execFile)
const SNIPPET = /^```ts\n([\s\S]*?)^```$/gm
/** A program that has not ended by then serves. */
const SERVES_AFTER_MS = 3_000
const SETTINGS = {
  strict: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  target: 'es2022',
  lib: ['es2023', 'esnext.disposable', 'dom'],
  module: 'nodenext',
  skipLibCheck: true,
  rewriteRelativeImportExtensions: true,
  outDir: 'out',
  rootDir: '.',
}

const [project] = process.argv.slice(2)
const folder = join(project, 'snippets')
const tsc = join(project, 'node_modules/typescript/bin/tsc')

function writeSnippets(): string[] {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  const root = join(project, 'node_modules/stowage')
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
  const names: string[] = []
  for (const page of ['README.md', ...pages.map((name) => join('docs', name))]) {
    for (const [at, [, text]] of [...readFileSync(join(root, page), 'utf8').matchAll(SNIPPET)].entries()) {
      const name = `${page.replace(/\W/g, '-')}-${at + 1}`
      names.push(name)
      writeFileSync(join(folder, `${name}.ts`), /^(?:import|export) /m.test(text) ? text : `${text}\nexport {}\n`)
    }
  }
  cpSync(join(import.meta.dirname, 'context.ts.txt'), join(folder, 'context.ts'))
  // The function of the README, which other pages import.
  cpSync(join(folder, 'docs-automation-md-1.ts'), join(folder, 'wall-checker.ts'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  return names
}

/** The programs in the package that the pages name to copy. */
function copyExamples(): string[] {
  return ['bench/functions', 'test/mounts/examples'].flatMap((path) => {
    const from = join(project, 'node_modules/stowage', path)
    cpSync(from, join(folder, path), { recursive: true })
    return readdirSync(from)
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${path}/${name}`)
  })
}

/** What the compiler says, by snippet. */
async function problems(names: readonly string[], around: readonly string[]): Promise<Map<string, string>> {
  const files = [...names.map((name) => `${name}.ts`), 'wall-checker.ts', ...around]
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: SETTINGS, files }))
  const said = await run(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], { cwd: folder }).then(
    () => '',
    ({ stdout }: { stdout: string }) => stdout,
  )
  const found = new Map<string, string>()
  for (const line of said.split('\n').filter((text) => /^\S+\(\d+/.test(text))) {
    const name = line.slice(0, line.indexOf('.ts('))
    found.set(name, `${found.get(name) ?? ''}  ${line}\n`)
  }
  return found
}

/** Why a program failed; nothing if it ended well, or serves. */
async function failureOf(name: string): Promise<string | undefined> {
  // A function's file is a command, which needs to be told what to do.
  const isFunction = readFileSync(join(folder, `${name}.ts`), 'utf8').includes('executeFunction(')
  const args = isFunction ? ['generate-schema', 'schema.json'] : []
  const child = spawn(process.execPath, [join(folder, 'out', `${name}.js`), ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (output += bytes.toString()))
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const code = await Promise.race([ended, delay(SERVES_AFTER_MS)])
  if (code === undefined) {
    child.kill()
    await ended
    return undefined
  }
  return code === 0 ? undefined : `ended with ${code}: ${output}`
}

const names = writeSnippets()
const examples = copyExamples()
const failures: string[] = []
for (const [name, said] of await problems(names, ['context.ts', ...examples]))
  failures.push(`${name} does not compile:\n${said}`)
const incomplete = await problems(names, [])
const programs = names.filter((name) => !incomplete.has(name))
for (const name of programs) {
  const failure = await failureOf(name)
  if (failure !== undefined) failures.push(`${name}: ${failure}`)
}
if (failures.length > 0) {
  process.stderr.write(`${failures.join('\n')}\n`)
  process.exitCode = 1
} else
  process.stdout.write(
    `${names.length} snippets of README and docs and ${examples.length} examples compile; ${programs.length} snippets are programs, and run\n`,
  )
