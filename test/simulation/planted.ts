import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Mutant } from './mutant.ts'

const REPOSITORY: string = process.cwd()

/** What a planted fault led to. */
export interface Search {
  /** What the first seed that found it says, `undefined` where none did. */
  readonly found: string | undefined
  readonly output: string
}

/** Makes runs of so many seeds over a copy of the core that has this fault, until one finds it. */
export async function searchFor(mutant: Mutant, seeds: number, folder: string): Promise<Search> {
  const outfile = join(folder, `${mutant.name.replaceAll(' ', '-')}.mjs`)
  await compileWith(mutant, outfile)
  const { workload = 'objects' } = mutant
  const child = spawn(process.execPath, [outfile, '--workload', workload, '--seeds', String(seeds), '--as-found'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd: REPOSITORY,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await new Promise((resolve) => child.on('close', resolve))
  return { found: /^seed \d+: .*/m.exec(output)?.[0], output }
}

/** What the mutant makes of each file that it changes. Throws where a text is not there exactly once. */
export function plantedIn({ name, path, replace, also = [] }: Mutant): ReadonlyMap<string, string> {
  const files = new Map<string, string>()
  for (const edit of [{ path, replace }, ...also]) {
    let contents = readFileSync(join(REPOSITORY, edit.path), 'utf8')
    for (const [from, to] of edit.replace) {
      if (contents.split(from).length !== 2) throw new Error(`${name}: ${edit.path} must hold once: ${from}`)
      contents = contents.replace(from, () => to)
    }
    files.set(join(REPOSITORY, edit.path), contents)
  }
  return files
}

/** The command `simulate` in one file, with the fault in its core. */
async function compileWith(mutant: Mutant, outfile: string): Promise<void> {
  const files = plantedIn(mutant)
  await build({
    entryPoints: [join(REPOSITORY, 'test/simulation/simulate.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    logLevel: 'warning',
    plugins: [
      {
        name: 'plant',
        setup: ({ onLoad }) =>
          onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
            const contents = files.get(path)
            return contents === undefined ? undefined : { contents, loader: 'ts' }
          }),
      },
    ],
  })
}
