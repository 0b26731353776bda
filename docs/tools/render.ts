import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ARCHIVES_AREA } from '../../src/archive/server/openapi.ts'
import { AUTOMATION_AREA } from '../../src/automation-server/schemas/openapi/area.ts'
import { openApiDocument } from '../../src/openapi/document.ts'
import { REPOSITORY } from './entry-points.ts'

/** `npm run docs` renders the reference pages into `docs/reference/`, which need no network to be read. See `docs/README.md`. */
const TOOLS = import.meta.dirname
const REFERENCE = join(REPOSITORY, 'docs', 'reference')

function renderHttp(): void {
  const bundle = join(TOOLS, 'node_modules', 'swagger-ui-dist')
  const options = {
    dom_id: '#reference',
    docExpansion: 'list',
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    supportedSubmitMethods: [],
    validatorUrl: null,
    spec: openApiDocument({ server: '/', areas: [AUTOMATION_AREA, ARCHIVES_AREA] }),
  }
  // A script's text ends at the first of its end tags, wherever that stands.
  const asScript = (text: string): string => text.replaceAll('</script', '<\\/script')
  const page = [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width">',
    '<title>Stowage: the HTTP interface</title>',
    `<style>${readFileSync(join(bundle, 'swagger-ui.css'), 'utf8')}</style>`,
    '</head>',
    '<body>',
    '<div id="reference"></div>',
    `<script>${asScript(readFileSync(join(bundle, 'swagger-ui-bundle.js'), 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, ''))}</script>`,
    `<script>SwaggerUIBundle(${asScript(JSON.stringify(options))})</script>`,
    '</body>',
    '</html>',
    '',
  ]
  writeFileSync(join(REFERENCE, 'http.html'), page.join('\n'))
}

/** Fails for a broken link in a docstring and for anything exported without one. */
function renderTypeScript(): void {
  execFileSync(
    process.execPath,
    [join(TOOLS, 'node_modules', 'typedoc', 'bin', 'typedoc'), '--options', join(TOOLS, 'typedoc.json')],
    { stdio: 'inherit' },
  )
}

/** Links of the rendered pages and of the pages that people write, to files that are not there. */
function brokenLinks(): string[] {
  const rendered = readdirSync(REFERENCE, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.html') && path !== 'http.html')
    .map((path) => join(REFERENCE, path))
  const written = [
    'README.md',
    'ARCHITECTURE.md',
    'CHANGELOG.md',
    ...readdirSync(join(REPOSITORY, 'docs'))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ].map((path) => join(REPOSITORY, path))
  return [...rendered, ...written].flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(?:\bhref="|\]\()([^"#)\s]+)[^")]*["|)]/g)]
      .map(([, target]) => target)
      .filter((target) => !/^[a-z]+:/i.test(target) && !existsSync(resolve(dirname(file), decodeURIComponent(target))))
      .map((target) => `${file.slice(REPOSITORY.length + 1)} links to ${target}, which does not exist`),
  )
}

rmSync(REFERENCE, { recursive: true, force: true })
mkdirSync(REFERENCE, { recursive: true })
renderHttp()
renderTypeScript()
const broken = brokenLinks()
for (const line of broken) console.error(line)
if (broken.length > 0) process.exitCode = 1
else console.log('docs/reference/http.html and docs/reference/typescript/index.html')
