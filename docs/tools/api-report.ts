import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Extractor, ExtractorConfig, type ExtractorMessage, type IConfigFile } from '@microsoft/api-extractor'
import { brokenPromises, stableNames } from '../../test/support/stable-names.ts'
import { type EntryPoint, entryPoints, REPOSITORY } from './entry-points.ts'

/**
 * `npm run api` compares what the package exports with the reports in `docs/api/`, so that no change of the public surface goes unseen;
 * `npm run api -- --update` writes them, and reports changes of the other interfaces that break users. Needs
 * `npm run build`. Every export and each of its members must have a docstring, and every type that an exported one
 * names must be exported, too, by one of the entry points.
 */
const REPORTS = join(REPOSITORY, 'docs', 'api')
/** The other interfaces that docs/versioning.md promises: HTTP, error codes, archives, the command line, metrics. */
const INTERFACES = 'interfaces.md'
const INTERFACES_TITLE = `# Stable interfaces

What programs may rely on beside the TypeScript API, one promise a line. Written by \`npm run api -- --update\`; docs/versioning.md says what it means.
`

/**
 * What exported types name and nobody outside needs: steps of computed types, and what a service and its extensions say to each other. As in
 * `intentionallyNotExported` of `typedoc.json`.
 */
const INSIDE: ReadonlySet<string> = new Set(['OptionalNames', 'Types', 'ApiArea', 'Resource', 'ServiceContext'])

interface Report {
  readonly file: string
  readonly text: string
  readonly exported: readonly string[]
  readonly undocumented: readonly string[]
  readonly forgotten: readonly string[]
}

function makeReport(entry: EntryPoint, folder: string): Report {
  const file = `${entry.name.replaceAll('/', '-')}.api.md`
  const messages: ExtractorMessage[] = []
  const result = Extractor.invoke(configOf(entry, file, folder), {
    localBuild: true,
    messageCallback: (message) => {
      messages.push(message)
      message.handled = true
    },
  })
  if (!result.succeeded) throw new Error(`${entry.name}: ${messages.map(({ text }) => text).join('\n')}`)
  const text = readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n')
  const declared = [
    ...text.matchAll(/^\/\/ @public.*\nexport (?:declare |abstract )*(?:class|const|function|interface|type) (\w+)/gm),
  ]
  return {
    file,
    text,
    exported: declared.map(([, name]) => name),
    undocumented: undocumentedIn(text),
    forgotten: messages.flatMap(({ messageId, text }) =>
      messageId === 'ae-forgotten-export' ? [forgottenName(text)] : [],
    ),
  }
}

/** Exports and members without a docstring, as `Export` and `Export.member`. */
function undocumentedIn(text: string): string[] {
  const found: string[] = []
  let [owner, isMarked] = ['', false]
  for (const line of text.split('\n')) {
    owner = /^export (?:declare |abstract )*(?:class|const|function|interface|type) (\w+)/.exec(line)?.[1] ?? owner
    if (isMarked) found.push(line.startsWith('export ') ? owner : `${owner}.${line.trim()}`)
    isMarked = /^\s*\/\/ .*\(undocumented\)/.test(line)
  }
  return found
}

/** Of two things with one name the second one is told with a number at its end. */
function forgottenName(text: string): string {
  return /"(\w+?)(?:_\d+)?"/.exec(text)?.[1] ?? text
}

function configOf({ types }: EntryPoint, file: string, folder: string): ExtractorConfig {
  const configObject: IConfigFile = {
    projectFolder: REPOSITORY,
    mainEntryPointFilePath: join(REPOSITORY, types),
    newlineKind: 'lf',
    compiler: {
      overrideTsconfig: {
        compilerOptions: {
          target: 'es2022',
          lib: ['es2023', 'esnext.disposable'],
          module: 'nodenext',
          moduleResolution: 'nodenext',
          types: ['node'],
          strict: true,
          skipLibCheck: true,
        },
        files: [join(REPOSITORY, types)],
      },
    },
    apiReport: {
      enabled: true,
      reportFolder: folder,
      reportTempFolder: join(folder, 'temporary'),
      reportFileName: file,
    },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
  }
  return ExtractorConfig.prepare({
    configObject,
    configObjectFullPath: join(REPOSITORY, 'api-extractor.json'),
    packageJsonFullPath: join(REPOSITORY, 'package.json'),
  })
}

function findings(reports: readonly Report[]): string[] {
  const exported = new Set(reports.flatMap((report) => report.exported))
  return reports.flatMap(({ file, undocumented, forgotten }) => [
    ...undocumented.map((name) => `${file}: ${name} has no docstring`),
    ...forgotten
      .filter((name) => !exported.has(name) && !INSIDE.has(name))
      .map((name) => `${file}: ${name} is named by an export and exported nowhere`),
  ])
}

function differences(reports: readonly Report[]): string[] {
  const committed = readdirSync(REPORTS).filter((name) => name.endsWith('.api.md'))
  const changed = reports
    .filter(({ file, text }) => !committed.includes(file) || readFileSync(join(REPORTS, file), 'utf8') !== text)
    .map(({ file }) => `${file} is not what the package exports`)
  const left = committed
    .filter((name) => !reports.some(({ file }) => file === name))
    .map((name) => `${name} is of no entry point`)
  return [...changed, ...left].map(
    (finding) => `docs/api/${finding}; look at the change and run: npm run build && npm run api -- --update`,
  )
}

function interfacesText(names: readonly string[]): string {
  return `${INTERFACES_TITLE}\n\`\`\`\n${names.join('\n')}\n\`\`\`\n`
}

/** How the other interfaces differ from the committed report; what breaks users is said line by line. */
function interfaceDifferences(names: readonly string[]): string[] {
  const file = join(REPORTS, INTERFACES)
  const committed = existsSync(file) ? readFileSync(file, 'utf8') : interfacesText([])
  if (committed === interfacesText(names)) return []
  const [, lines = ''] = committed.split('```\n')
  return [
    ...brokenPromises(lines.split('\n').filter(Boolean), names).map((broken) => `breaking: ${broken}`),
    `docs/api/${INTERFACES} is not what is there; look at the change and run: npm run build && npm run api -- --update`,
  ]
}

function update(reports: readonly Report[], names: readonly string[]): void {
  rmSync(REPORTS, { recursive: true, force: true })
  mkdirSync(REPORTS, { recursive: true })
  for (const { file, text } of reports) writeFileSync(join(REPORTS, file), text)
  writeFileSync(join(REPORTS, INTERFACES), interfacesText(names))
}

const folder = mkdtempSync(join(tmpdir(), 'stowage-api-'))
try {
  const reports = entryPoints().map((entry) => makeReport(entry, folder))
  const names = await stableNames()
  if (process.argv.includes('--update')) {
    for (const line of interfaceDifferences(names)) console.log(line)
    update(reports, names)
  }
  const wrong = [...findings(reports), ...differences(reports), ...interfaceDifferences(names)]
  for (const line of wrong) console.error(line)
  if (wrong.length > 0) process.exitCode = 1
  else
    console.log(
      `${reports.length} entry points, ${new Set(reports.flatMap(({ exported }) => exported)).size} exports, ${names.length} promises of other interfaces, as in docs/api`,
    )
} finally {
  rmSync(folder, { recursive: true, force: true })
}
