import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** An `@example` of a docstring. */
export interface DocstringExample {
  /** The export that the docstring is about, or that has the member; empty where it is about a whole file. */
  readonly exportName: string
  readonly text: string
}

const DOCSTRING = /\/\*\*((?:[^*]|\*(?!\/))*)\*\//g
const EXPORT = /^export (?:declare )?(?:abstract )?(?:async )?(?:class|const|function|interface|type) (\w+)/gm
const EXAMPLE = /^@example(?: [^\n]*)?\n([^]*?)(?=^@\w|$(?![^]))/gm
const FENCED = /^```\w*\n([^]*?)^```$/m

/** The examples of every docstring in a file of TypeScript, or of its declarations. */
export function examplesOf(source: string): DocstringExample[] {
  const exported = [...source.matchAll(EXPORT)]
  return [...source.matchAll(DOCSTRING)].flatMap((docstring) => {
    const text = docstring[1].replaceAll(/^[ \t]*\*? ?/gm, '').trimEnd()
    const end = docstring.index + docstring[0].length
    // A docstring stands right before an export, or inside one.
    const follows = exported.find(({ index }) => index > end && source.slice(end, index).trim() === '')
    const around = exported.findLast(({ index }) => index < docstring.index)
    const [, exportName] = follows ?? around ?? ['', '']
    return [...`${text}\n`.matchAll(EXAMPLE)].map(([, body]) => ({ exportName, text: FENCED.exec(body)?.[1] ?? body }))
  })
}

/** The names that an entry point exports, by its report in `docs/api`. */
export function exportedNames(report: string): ReadonlySet<string> {
  return new Set([...report.matchAll(EXPORT)].map(([, name]) => name))
}

/** The examples of all files of declarations in a folder, each by a name that says where it stands. */
export function declaredExamples(folder: string): Map<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))
  return new Map(
    files.flatMap((name) =>
      examplesOf(readFileSync(join(folder, name), 'utf8')).map(({ exportName, text }, at): [string, string] => [
        `${name.slice(0, -'.d.ts'.length).replaceAll(/\W/g, '-')}-${exportName || 'module'}-${at + 1}`,
        text,
      ]),
    ),
  )
}
