import { folderCredentials } from '../../src/credentials/folder-credentials.ts'
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import { building } from '../../bench/model/building.ts'
import { REPOSITORY } from '../../bench/repository.ts'
import { type Target, uploadModel } from '../../bench/upload.ts'
import { issueToken } from '../../src/access/token-store.ts'
import { newDataFolder, startServer } from '../cli/command.ts'
import { required } from '../clients/support.ts'
import { codeBlocks } from '../support/markdown.ts'
import { browserTest, screenshot } from './support/browser.ts'
import { freePort } from '../../bench/free-port.ts'

/* The page on the viewer, done as it says: its two scripts, its page and its command line, with the viewer as published. */

/** Software draws what a graphics card would draw in a moment. */
const DRAWN_WITHIN_MS = 240_000
const VIEWPORT = { width: 320, height: 240 }
/** A few elements: the whole building is a long line in so small a picture. */
const DEMO_OBJECTS = 200

/** This package by its name, as the test runs it. */
const STOWAGE = join(import.meta.dirname, '../..')

interface Site {
  readonly address: string
  readonly server: string
  readonly root: string
}

/** Makes a model on a server, in a folder with the documented script: the id of its root. */
type MakeModel = (target: Target, folder: string) => Promise<string>

/** The script of the page. */
const documentedModel: MakeModel = async ({ url }, cwd) => {
  const env = { ...process.env, STOWAGE_URL: url }
  return (await promisify(execFile)(process.execPath, ['model.mjs'], { cwd, env })).stdout.trim()
}

/** The building of `npm start`, smaller: software draws it. */
const demoModel: MakeModel = async (target) => (await uploadModel(target, building({ objects: DEMO_OBJECTS }))).rootId

/** Follows the page up to its last step: the address to open. */
async function followPage(t: TestContext, makeModel: MakeModel): Promise<Site> {
  const data = newDataFolder(t)
  const folder = join(data, '..', 'viewer')
  const port = await freePort()
  const issued = await issueToken(folderCredentials(data), {
    projects: new Map([['demo', 'write']]),
    subject: 'page',
    ttlSeconds: 3_600,
  })
  const { line } = await startServer(t, ['--data', data, '--json', '--cors', `http://127.0.0.1:${port}`])
  const { url: server } = JSON.parse(line) as { readonly url: string }
  const [model, main] = await codeBlocks('viewer.md', 'js')
  const [html] = await codeBlocks('viewer.md', 'html')
  const modules = join(folder, 'node_modules')
  await mkdir(modules, { recursive: true })
  const viewer = required('STOWAGE_TEST_VIEWER', 'a node_modules folder with @speckle/viewer')
  await symlink(join(viewer, '@speckle'), join(modules, '@speckle'))
  await symlink(STOWAGE, join(modules, 'stowage'))
  const files = { 'model.mjs': model, 'main.js': main, 'index.html': html, 'token.txt': issued.token }
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
  const root = await makeModel({ url: server, token: issued.token, projectId: 'demo' }, folder)
  await serveDocumented(t, folder, port)
  const fragment = new URLSearchParams({ server, project: 'demo', root, token: issued.token })
  return { address: `http://127.0.0.1:${port}/#${fragment.toString()}`, server, root }
}

/** The documented line that bundles the page and serves it. It ends with its standard input. */
async function serveDocumented(t: TestContext, cwd: string, port: number): Promise<void> {
  const lines = (await codeBlocks('viewer.md', 'sh')).flatMap((block) => block.split('\n'))
  const line = lines.find((one) => one.startsWith('npx esbuild ')) ?? ''
  const args = line.replace('127.0.0.1:8000', `127.0.0.1:${port}`).split(' ').slice(2)
  const child = spawn(join(REPOSITORY, 'node_modules/.bin/esbuild'), args, { cwd, stdio: ['pipe', 'ignore', 'pipe'] })
  t.after(() => child.stdin.end())
  let said = ''
  const listening = new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error(said)))
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
      if (said.includes(`:${port}`)) resolve()
    })
  })
  await listening
}

interface Colours {
  readonly reddish: number
  readonly bluish: number
  readonly white: number
}

/** Counts the pixels of a picture of the page, which a browser decodes best. */
async function coloursOf(page: Page): Promise<Colours> {
  const picture = (await page.screenshot({ timeout: DRAWN_WITHIN_MS })).toString('base64')
  return page.evaluate<Colours>(`(${COUNT_COLOURS})(${JSON.stringify(picture)})`)
}

/** Runs in the browser. */
const COUNT_COLOURS = `async (base64) => {
  const bitmap = await createImageBitmap(await (await fetch('data:image/png;base64,' + base64)).blob())
  const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d')
  context.drawImage(bitmap, 0, 0)
  const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height)
  const counts = { reddish: 0, bluish: 0, white: 0 }
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue] = data.subarray(at, at + 3)
    if (red > 120 && red > blue + 40 && red > green + 40) counts.reddish += 1
    else if (blue > red + 15 && blue > 40) counts.bluish += 1
    else if (red > 240 && green > 240 && blue > 240) counts.white += 1
  }
  return counts
}`

browserTest(
  'the viewer draws a model of a plain server, as its page says',
  async ({ t, page }) => {
    const { address, server, root } = await followPage(t, documentedModel)
    const asked: string[] = []
    page.on('request', (request) => {
      const { origin, pathname, search } = new URL(request.url())
      if (origin === server) asked.push(`${request.method()} ${pathname}${search}`)
    })
    await untilDrawn(t, page, { address, name: 'viewer', isDrawn: isStair })
    const allowed = [
      `HEAD /objects/demo/${root}?strict`,
      `GET /objects/demo/${root}/single`,
      'POST /api/v2/projects/demo/object-stream/',
    ]
    assert.deepEqual([...new Set(asked)].sort(), allowed.sort())
  },
  { context: { viewport: VIEWPORT } },
)

browserTest(
  'the viewer draws the building of the demo, in its colours',
  async ({ t, page }) => {
    const { address } = await followPage(t, demoModel)
    await untilDrawn(t, page, { address, name: 'viewer-demo', isDrawn: isBuilding })
  },
  { context: { viewport: VIEWPORT } },
)

interface Drawing {
  readonly address: string
  /** Of the picture that is kept. */
  readonly name: string
  readonly isDrawn: (colours: Colours) => boolean
}

async function untilDrawn(t: TestContext, page: Page, { address, name, isDrawn }: Drawing): Promise<void> {
  await page.goto(address)
  await page.waitForFunction(`document.title === 'Loaded'`, undefined, { timeout: DRAWN_WITHIN_MS })
  let colours = await coloursOf(page)
  for (const deadline = performance.now() + DRAWN_WITHIN_MS; !isDrawn(colours); colours = await coloursOf(page))
    assert.ok(performance.now() < deadline, `nothing is drawn: ${JSON.stringify(colours)}`)
  t.diagnostic(`${JSON.stringify(colours)} ${await screenshot(page, name, DRAWN_WITHIN_MS)}`)
}

/** Brick is reddish, glass and steel are bluish. */
function isBuilding({ reddish, bluish, white }: Colours): boolean {
  const all = VIEWPORT.width * VIEWPORT.height
  return reddish > all / 2_000 && bluish > all / 2_000 && white < all * 0.98
}

/** The stair goes from dark blue to red, on white. */
function isStair({ reddish, bluish, white }: Colours): boolean {
  const all = VIEWPORT.width * VIEWPORT.height
  return reddish > all / 200 && bluish > all / 1_000 && white > all / 2
}
