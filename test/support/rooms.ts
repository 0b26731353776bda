import { readSource } from './sources.ts'

const SECTION = /<!-- rooms -->([^]*)<!-- end of rooms -->/
/** `- **folder**: the description. Imports a, b.` */
const ENTRY = /^- \*\*`(?<folder>[^`]+)`\*\*: .+ Imports (?:nothing|(?<imports>`[^`]+`(?:, `[^`]+`)*))\.$/

/** The list of folders in `ARCHITECTURE.md`, in its order: the only other folders that each may import. */
export function readRooms(): Readonly<Record<string, readonly string[]>> {
  const [, section = ''] = SECTION.exec(readSource('ARCHITECTURE.md').text) ?? []
  const entries = section.replaceAll(/\n +/g, ' ').trim().split('\n')
  return Object.fromEntries(
    entries.map((entry) => {
      const { folder, imports = '' } = ENTRY.exec(entry)?.groups ?? {}
      if (folder === undefined) throw new Error(`ARCHITECTURE.md lists a folder in another form: ${entry}`)
      return [folder, [...imports.matchAll(/[^`, ]+/g)].map(([name]) => name)]
    }),
  )
}
