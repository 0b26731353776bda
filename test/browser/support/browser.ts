import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { PATIENCE_MS } from '../../support/patience.ts'

/** Debian's, or what this variable names. */
const EXECUTABLE = process.env.STOWAGE_TEST_CHROMIUM ?? '/usr/bin/chromium'
/** Where the pictures of tests that failed are put. */
const SCREENSHOTS = process.env.STOWAGE_TEST_SCREENSHOTS ?? join(tmpdir(), 'stowage-screenshots')
/** The last two let pages draw with WebGL where there is no graphics card. */
const ARGUMENTS = ['--no-sandbox', '--disable-dev-shm-usage', '--use-angle=swiftshader', '--enable-unsafe-swiftshader']
const ACTION_TIMEOUT_MS: number = PATIENCE_MS
const VIEWPORT = { width: 1_000, height: 700 }

const launched = new Map<string, Promise<Browser>>()

/** One browser for all tests of a file. */
function browser(): Promise<Browser> {
  const existing = launched.get(EXECUTABLE)
  if (existing !== undefined) return existing
  const launching = chromium.launch({ executablePath: EXECUTABLE, args: ARGUMENTS })
  launched.set(EXECUTABLE, launching)
  return launching
}

after(async () => {
  for (const launching of launched.values()) await (await launching.catch(() => undefined))?.close()
})

export interface BrowserTest {
  readonly t: TestContext
  /** In a profile of its own: no cookies, nothing stored. */
  readonly page: Page
}

export interface BrowserTestOptions {
  readonly mayLog?: RegExp
  /** What the browser is like, such as without scripts or on a telephone. */
  readonly context?: BrowserContextOptions
}

/**
 * A test in a real browser. It fails when the page throws or writes an error to the console, unless `mayLog` matches
 * it. When it fails, a picture of the page is kept, and its place is in the message.
 */
export function browserTest(
  name: string,
  run: (test: BrowserTest) => Promise<void>,
  options: BrowserTestOptions = {},
): void {
  void test(name, async (t) => {
    const context = await (await browser()).newContext({ viewport: VIEWPORT, ...options.context })
    context.setDefaultTimeout(ACTION_TIMEOUT_MS)
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on(
      'console',
      (message) =>
        message.type() === 'error' && options.mayLog?.test(message.text()) !== true && complaints.push(message.text()),
    )
    try {
      await run({ t, page })
      assert.deepEqual(complaints, [])
    } catch (error) {
      throw new Error(
        `${String(error)}\n${complaints.join('\n')}\nThe page when it failed: ${await screenshot(page, name)}`,
        { cause: error },
      )
    } finally {
      await context.close()
    }
  })
}

/** Takes a picture of the page as it is, and resolves with its path. */
export async function screenshot(page: Page, name: string, timeout: number = ACTION_TIMEOUT_MS): Promise<string> {
  await mkdir(SCREENSHOTS, { recursive: true })
  const path = join(SCREENSHOTS, `${name.replaceAll(/[^\w]+/g, '-')}.png`)
  await page.screenshot({ path, timeout })
  return path
}
