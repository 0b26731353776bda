import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const REPOSITORY: string = join(import.meta.dirname, '..', '..')

export interface EntryPoint {
  /** As it is imported, such as `stowage/express`. */
  readonly name: string
  /** The file of its types, from the repository on. */
  readonly types: string
  /** The file of its source. */
  readonly source: string
}

/** What the package exports with types: `exports` of `package.json` is the one list. */
export function entryPoints(): EntryPoint[] {
  const manifest = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>
  }
  return Object.entries(manifest.exports).flatMap(([path, target]) => {
    if (typeof target === 'string') return []
    return [
      {
        name: `${manifest.name}${path.slice(1)}`,
        types: target.types,
        source: target.types.replace('./dist/', '').replace(/\.d\.ts$/, '.ts'),
      },
    ]
  })
}
