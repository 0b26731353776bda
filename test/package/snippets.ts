import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { declaredExamples } from './docstring-examples.ts'

/*
 * `tsx test/package/snippets.ts PROJECT`: takes the TypeScript of README and docs and the examples of docstrings out of the package that is installed in the
 * project, compiles each piece there under the strictest settings, and runs it. What a piece takes from the host around it is in `surroundings.ts.txt`:
 * values only, so that each piece imports what it uses of the package.
 */

const run = promisify(execFile)
const SNIPPET = /^```ts\n([\s\S]*?)^```$/gm
/** The hosts in which a piece mounts the service, by the line that does so. */
const MOUNTS: Readonly<Record<string, RegExp>> = {
  app: /^app\.use\('\/models', expressMount\(service\)\)/m,
  koa: /^koa\.use\(koaMount\(/m,
  fastify: /^await fastify\.register\(/m,
  hono: /^hono\.mount\(/m,
}
/** A service of the piece's own has no model. */
const OWN_SERVICE = /^const service = /m
const PIECES_AT_ONCE = 3
const TIMEOUT_MS = 120_000
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

/** The text of each piece, by a name that says where it stands. */
function pieces(): Map<string, string> {
  const root = join(project, 'node_modules/stowage')
  const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
  const found = new Map<string, string>()
  for (const page of ['README.md', ...pages.map((name) => join('docs', name))])
    for (const [at, [, text]] of [...readFileSync(join(root, page), 'utf8').matchAll(SNIPPET)].entries())
      found.set(`${page.replace(/\W/g, '-')}-${at + 1}`, text)
  for (const [name, text] of declaredExamples(join(root, 'dist'))) found.set(name, text)
  return found
}

function write(found: ReadonlyMap<string, string>): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const [name, text] of found)
    writeFileSync(join(folder, `${name}.ts`), /^(?:import|export) /m.test(text) ? text : `${text}\nexport {}\n`)
  for (const name of ['surroundings', 'run-piece'])
    cpSync(join(import.meta.dirname, `${name}.ts.txt`), join(folder, `${name}.ts`))
  // The function of the page on automation, which other pages import.
  cpSync(join(folder, 'docs-automation-md-1.ts'), join(folder, 'wall-checker.ts'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
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

/** What the compiler says, by piece. */
async function problems(names: readonly string[], around: readonly string[]): Promise<Map<string, string>> {
  const files = [...names, 'wall-checker'].map((name) => `${name}.ts`)
  const settings = { compilerOptions: SETTINGS, files: [...files, ...around] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings))
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

/** Why a piece failed; nothing if it ran to its end, and what it opened answers. */
async function failureOf(name: string, text: string, isFragment: boolean): Promise<string | undefined> {
  const cwd = join(folder, 'running', name)
  mkdirSync(cwd, { recursive: true })
  writeFileSync(join(cwd, 'package.json'), '{"type":"module"}')
  cpSync(join(folder, 'out/wall-checker.js'), join(cwd, 'take-off.js'))
  const file = join(folder, 'out', `${name}.js`)
  const hosts = OWN_SERVICE.test(text) ? [] : Object.keys(MOUNTS).filter((host) => MOUNTS[host].test(text))
  // A function's file is a command, which needs to be told what to do.
  const args = text.includes('= executeFunction(')
    ? [file, 'generate-schema', 'schema.json']
    : [join(folder, 'out/run-piece.js'), file, ...(isFragment ? ['around', ...hosts] : [])]
  try {
    await run(process.execPath, args, { cwd, timeout: TIMEOUT_MS })
    return undefined
  } catch (error) {
    const { code, stdout, stderr } = error as {
      readonly code: unknown
      readonly stdout: string
      readonly stderr: string
    }
    return `ended with ${String(code)}: ${stdout}${stderr}`
  }
}

const found = pieces()
write(found)
const examples = copyExamples()
const failures: string[] = []
// A whole program needs nothing around it.
const fragments = new Set((await problems([...found.keys()], [])).keys())
for (const [name, said] of await problems([...found.keys()], ['surroundings.ts', 'run-piece.ts', ...examples]))
  failures.push(`${name} does not compile:\n${said}`)
const waiting = [...found].filter(([name]) => existsSync(join(folder, 'out', `${name}.js`)))
await Promise.all(
  Array.from({ length: PIECES_AT_ONCE }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const failure = await failureOf(...next, fragments.has(next[0]))
      if (failure !== undefined) failures.push(`${next[0]}: ${failure}`)
    }
  }),
)
if (failures.length > 0) {
  process.stderr.write(`${failures.join('\n')}\n`)
  process.exitCode = 1
} else
  process.stdout.write(
    `${found.size} pieces of README, docs and docstrings compile and run, ${fragments.size} of them among values of a host; ${examples.length} examples compile\n`,
  )
