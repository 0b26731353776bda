import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import { newDataFolder } from '../cli/command.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { browserTest, screenshot } from './support/browser.ts'

const DEMO = fileURLToPath(new URL('../../bench/demo.ts', import.meta.url))
const STARTED = /Open this link: \S+\n/
/** It builds the package first. */
const STARTED_WITHIN_MS: number = 5 * PATIENCE_MS

/** What `npm start` runs, on a folder of its own. Resolves to all that it printed. */
async function demo(t: TestContext): Promise<string> {
  const child = spawn(process.execPath, [...process.execArgv, DEMO, '--port', '0', '--data', newDataFolder(t)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGINT')
    await exit
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const signal = AbortSignal.timeout(STARTED_WITHIN_MS)
  while (!STARTED.test(printed))
    await Promise.race([
      once(child.stdout, 'data', { signal }),
      exit.then(() => assert.fail(`it ended, and had printed ${printed}`)),
    ])
  return printed
}

async function openAutomation(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: 'demo', exact: true }).click()
  await page.getByRole('link', { name, exact: true }).first().click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
}

async function runAndWait(page: Page, status: 'Succeeded' | 'Failed'): Promise<void> {
  await page.getByRole('button', { name: 'Run now' }).click()
  await page.getByText(status, { exact: true }).first().waitFor()
}

browserTest(
  'npm start: the link signs in; the rule checker marks walls, the take-off gives a table, and the renamer makes a version',
  async ({ t, page }) => {
    const printed = await demo(t)
    await page.goto(/^Open this link: (http:\S+sign-in\?code=\S+)$/m.exec(printed)?.[1] ?? '')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('link', { name: 'demo', exact: true }).click()

    await page.getByRole('link', { name: 'New automation of Rule checker' }).click()
    await page.getByLabel('Name', { exact: true }).fill('Walls of ninety minutes')
    await page.getByLabel('Lowest rating').fill('90')
    await page.getByLabel('Only when a person starts it').check()
    await page.getByRole('button', { name: 'Create' }).click()
    await runAndWait(page, 'Failed')
    await page
      .getByText(/^Fire Rating is .*, below 90 minutes$/)
      .first()
      .waitFor()
    await page.getByText('There is no Fire Rating').first().waitFor()
    await page.getByRole('button', { name: 'Run again' }).waitFor()
    await screenshot(page, 'npm start, rule checker')

    await openAutomation(page, 'Quantities')
    await runAndWait(page, 'Succeeded')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Take-off.csv' }).click(),
    ])
    const rows = (await readFile(await download.path(), 'utf8')).trim().split('\r\n')
    assert.ok(rows.length > 10 && rows.every((row) => row.split(',').length >= 4), rows.join('\n'))

    await openAutomation(page, 'Names of levels')
    await runAndWait(page, 'Succeeded')
    await page.getByRole('link', { name: 'demo', exact: true }).click()
    await page.getByText('2 versions', { exact: true }).waitFor()
  },
)
