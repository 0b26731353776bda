import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import { tokenFor } from '../pages/support.ts'
import { browserTest, screenshot } from './support/browser.ts'
import { ARTIFACT, Gate, pagesSite, type PagesSite } from './support/pages-site.ts'

/** What browsers write themselves about a form that was not right, and about a page that asks to sign in. */
const mayLog = /status of 4(?:01|22) /

async function signInByToken(page: Page, { url }: PagesSite): Promise<void> {
  await page.goto(`${url}/web/projects/p`)
  await page.getByLabel('Token').fill(await tokenFor({ p: 'write' }))
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'p', level: 1 }).waitFor()
}

interface Control {
  readonly label: string
  /** What cannot be, by turns, and what is said of it. */
  readonly wrong: readonly (readonly [value: string, message: string])[]
  readonly right: string
}

const TEXTS: readonly Control[] = [
  {
    label: 'Name',
    wrong: [
      ['', 'Name is required.'],
      ['x'.repeat(201), 'Name must be one line of at most 200 characters.'],
    ],
    right: 'Nightly check',
  },
  {
    label: 'Project owner',
    wrong: [
      ['', 'Project owner is required.'],
      ['ada', 'Project owner must match the pattern ^[A-Z][a-z ]*$.'],
    ],
    right: 'Ada',
  },
  {
    label: 'Tolerance',
    wrong: [
      ['abc', 'Tolerance must be a number.'],
      ['100', 'Tolerance must be less than 100.'],
    ],
    right: '12.5',
  },
  {
    label: 'Floors',
    wrong: [
      ['2.5', 'Floors must be a whole number.'],
      ['6', 'Floors must be 5 or less.'],
    ],
    right: '3',
  },
  {
    label: 'API key',
    wrong: [
      ['', 'API key is required.'],
      ['short', 'API key must have at least 8 characters.'],
    ],
    right: 'correct horse',
  },
]

/** Fills the form wrong twice, and sees what is said of it. */
async function fillFormWrong(page: Page): Promise<void> {
  for (const turn of [0, 1]) {
    for (const { label, wrong } of TEXTS) await page.getByLabel(label).fill(wrong[turn][0])
    await page.getByRole('button', { name: 'Create' }).click()
    const messages = [...TEXTS.map(({ wrong }) => wrong[turn][1]), 'Analysis is required.']
    const summary = page.getByRole('alert')
    await summary.getByText(`There are ${messages.length} problems`).waitFor()
    for (const message of messages) {
      await summary.getByRole('link', { name: message }).waitFor()
      assert.equal(await page.locator('.complaint').filter({ hasText: message }).count(), 1, message)
    }
    assert.equal(await page.getByLabel('API key').inputValue(), '')
    for (const { label, wrong } of TEXTS.filter(({ label: one }) => one !== 'API key'))
      assert.equal(await page.getByLabel(label).inputValue(), wrong[turn][0])
  }
}

async function fillForm(page: Page): Promise<void> {
  for (const { label, right } of TEXTS) await page.getByLabel(label).fill(right)
  await page.getByLabel('Remark').fill('first\nsecond')
  await page.getByLabel('Be strict').uncheck()
  await page.getByLabel('Round lengths').selectOption('No')
  await page.getByLabel('Analysis').selectOption('Thermal analysis')
  await page.getByLabel('Unit').selectOption('m')
  await page.getByLabel('Only when a person starts it').check()
  await page.getByRole('button', { name: 'Create' }).click()
}

const STORED = {
  owner: 'Ada',
  remark: 'first\nsecond',
  tolerance: 12.5,
  floors: 3,
  strict: false,
  rounding: false,
  analysis: 'thermal',
  unit: 'm',
  apiKey: '******',
}

async function makeAndRun(
  page: Page,
  { extension }: PagesSite,
  before: (page: Page) => Promise<void> = async () => undefined,
): Promise<void> {
  await page.getByRole('link', { name: 'New automation of Checker' }).click()
  await before(page)
  await fillForm(page)
  await page.getByRole('heading', { name: 'Nightly check', level: 1 }).waitFor()
  const [{ inputs }] = (await extension.project('p').automations.list()).items
  assert.deepEqual(inputs, STORED)
  await page.getByRole('button', { name: 'Run now' }).click()
  await page.getByText('Looking at walls').waitFor()
}

async function assertFinished(page: Page): Promise<void> {
  await page.getByText('4 of 5 walls have what they need.').first().waitFor()
  for (const words of ['1 Error', '1 Warning', '1 Note', '1 Success'])
    await page.getByRole('link', { name: words }).waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: ARTIFACT.name }).click(),
  ])
  assert.equal(download.suggestedFilename(), ARTIFACT.name)
  assert.equal(await readFile(await download.path(), 'utf8'), ARTIFACT.text)
  await page.getByRole('link', { name: 'Levels renamed' }).click()
  await page.getByRole('heading', { name: 'Versions' }).waitFor()
  assert.equal(
    await page
      .locator(':target')
      .innerText()
      .then((text) => text.includes('Levels renamed')),
    true,
  )
}

browserTest(
  'signed in by a link, a function is set up and run, and its run is followed while it goes on',
  async ({ t, page }) => {
    const gate = new Gate()
    const site = await pagesSite(t, { gate })
    await page.goto(`${site.url}${await site.web.signInLink({ token: await tokenFor({ p: 'write' }) })}`)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('link', { name: 'p', exact: true }).click()
    await makeAndRun(page, site, fillFormWrong)
    await page.evaluate(() => Object.assign(globalThis, { isStillThere: true }))
    assert.equal(await page.getByRole('progressbar').getAttribute('value'), '0.4')
    await page.getByText('12 objects', { exact: true }).click()
    gate.open()
    await page.getByRole('button', { name: 'Run again' }).waitFor()
    assert.match(await page.getByRole('status').innerText(), /^Succeeded: 4 of 5 walls/)
    assert.match(await page.title(), /Succeeded: Run of Nightly check/)
    assert.equal(
      await page.locator('details[open]').filter({ hasText: '12 objects' }).count(),
      1,
      'what was opened stays open',
    )
    assert.equal(await page.evaluate(() => 'isStillThere' in globalThis), true, 'the page was not loaded again')
    await assertFinished(page)
  },
  { mayLog },
)

browserTest(
  'a run is canceled, run again, and canceled again',
  async ({ t, page }) => {
    const site = await pagesSite(t)
    await signInByToken(page, site)
    await makeAndRun(page, site)
    const first = page.url()
    await page.getByRole('button', { name: 'Cancel the run' }).click()
    await page.getByRole('button', { name: 'Run again' }).click()
    await page.getByText('Looking at walls').waitFor()
    assert.notEqual(page.url(), first)
    await page.getByRole('button', { name: 'Cancel the run' }).click()
    await page.getByRole('button', { name: 'Run again' }).waitFor()
    await page.getByRole('link', { name: 'Runs', exact: true }).click()
    assert.equal(await page.getByText('Canceled', { exact: true }).count(), 3, 'two runs, and the filter')
    await page.getByLabel('Status').selectOption('Succeeded')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByText('This run does not exist.').waitFor()
  },
  { mayLog },
)

browserTest(
  'all of it works without a script',
  async ({ t, page }) => {
    const gate = new Gate()
    const site = await pagesSite(t, { gate })
    await signInByToken(page, site)
    await makeAndRun(page, site, fillFormWrong)
    await page.locator('noscript .note').waitFor()
    gate.open()
    await page.getByRole('button', { name: 'Run again' }).waitFor()
    await assertFinished(page)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor()
  },
  { mayLog, context: { javaScriptEnabled: false } },
)

/** Presses Tab until something has the focus, and sees that it shows. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await page.keyboard.press('Tab')
    if (!(await target.evaluate((element) => element.matches(':focus')))) continue
    assert.equal(await target.evaluate((element) => element.matches(':focus-visible')), true, 'the focus shows')
    return
  }
  assert.fail(`Tab does not reach ${String(target)}`)
}

browserTest(
  'a keyboard is enough',
  async ({ t, page }) => {
    const site = await pagesSite(t)
    const { keyboard } = page
    await page.goto(`${site.url}/web/projects/p`)
    await page.getByLabel('Token').and(page.locator(':focus')).waitFor()
    await keyboard.type(await tokenFor({ p: 'write' }))
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'p', level: 1 }).waitFor()
    await keyboard.press('Tab')
    await keyboard.press('Enter')
    assert.equal(await page.locator(':focus').getAttribute('id'), 'content', 'the first link skips to the content')
    await tabTo(page, page.getByRole('link', { name: 'New automation of Checker' }))
    await keyboard.press('Enter')
    await tabTo(page, page.getByLabel('Project owner'))
    await keyboard.type('ada')
    await tabTo(page, page.getByLabel('Analysis'))
    await keyboard.type('Thermal')
    await tabTo(page, page.getByLabel('API key'))
    await keyboard.type('correct horse')
    await keyboard.press('Enter')
    await page.getByRole('alert').getByText('There is a problem').waitFor()
    assert.equal(await page.locator(':focus').getAttribute('class'), 'problems', 'what is wrong has the focus')
    await keyboard.press('Tab')
    await keyboard.press('Enter')
    assert.equal(await page.locator(':focus').getAttribute('aria-invalid'), 'true', 'its links lead to the controls')
    await keyboard.press('ControlOrMeta+A')
    await keyboard.type('Ada')
    await tabTo(page, page.getByLabel('API key'))
    await keyboard.type('correct horse')
    await keyboard.press('Enter')
    await tabTo(page, page.getByRole('button', { name: 'Run now' }))
    await keyboard.press('Enter')
    await page.getByText('Looking at walls').waitFor()
    await tabTo(page, page.getByRole('button', { name: 'Cancel the run' }))
    await keyboard.press('Enter')
    await tabTo(page, page.getByRole('button', { name: 'Run again' }))
  },
  { mayLog },
)

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}

async function assertAccessible(page: Page, axe: string, what: string): Promise<void> {
  await page.evaluate(axe)
  const { violations } = await page.evaluate<AxeResults>('axe.run({ resultTypes: ["violations"] })')
  assert.deepEqual(
    violations.map(
      ({ id, nodes }) =>
        `${what}: ${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('; ')}`,
    ),
    [],
  )
  assert.equal(
    await page.locator('html').evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
    0,
    `${what} does not scroll sideways`,
  )
}

/** Every page, in the states that it has. */
async function lookAtEveryPage(
  page: Page,
  site: PagesSite,
  gate: Gate,
  look: (what: string) => Promise<void>,
): Promise<void> {
  const { url, extension, web } = site
  await page.goto(`${url}${await web.signInLink({ token: await tokenFor({ p: 'write' }) })}`)
  await look('link')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Projects' }).waitFor()
  await look('projects')
  await page.goto(`${url}/web/projects?id=`)
  await look('no-project')
  await page.goto(`${url}/web/projects/p`)
  await look('empty-project')
  await makeAndRun(page, site)
  await look('going-run')
  const run = page.url()
  gate.open()
  await page.getByRole('button', { name: 'Run again' }).waitFor()
  for (const details of await page.locator('details').all())
    await details.evaluate((element) => element.setAttribute('open', ''))
  await look('run')
  const [{ id: automationId, modelId }] = (await extension.project('p').automations.list()).items
  const project = `${url}/web/projects/p`
  const { id: deletedId } = await extension.project('p').models.create({ name: 'Garden' })
  await extension.project('p').models.delete(deletedId)
  const others = {
    log: `${run}/logs`,
    errors: `${run}?level=ERROR`,
    project,
    'deleted-models': `${project}?deleted=true`,
    model: `${project}/models/${modelId}`,
    'storage-of-model': `${project}/models/${modelId}/usage`,
    storage: `${project}/usage`,
    collection: `${project}/collection`,
    automation: `${project}/automations/${automationId}`,
    change: `${project}/automations/${automationId}/edit`,
    runs: `${project}/runs`,
    absent: `${project}/runs/none`,
    forbidden: `${url}/web/projects/other`,
  }
  for (const [what, address] of Object.entries(others)) {
    await page.goto(address)
    await look(what)
  }
  await page.goto(`${project}/functions/checker/new`)
  await look('form')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('alert').waitFor()
  await look('wrong-form')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Paste a token to sign in.').waitFor()
  await look('sign-in')
}

for (const [name, context, ground] of [
  ['on a telephone, by day', { viewport: { width: 360, height: 700 }, colorScheme: 'light' }, 'rgb(255, 255, 255)'],
  ['on a desk, by night', { colorScheme: 'dark' }, 'rgb(20, 23, 26)'],
] as const) {
  browserTest(
    `every page is accessible ${name}`,
    async ({ t, page }) => {
      const axe = await readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
      const gate = new Gate()
      await lookAtEveryPage(page, await pagesSite(t, { gate }), gate, async (what) => {
        await assertAccessible(page, axe, what)
        assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), ground)
        if (process.env.STOWAGE_TEST_SCREENSHOTS !== undefined) await screenshot(page, `${what} ${name}`)
      })
    },
    { mayLog: /status of 4(?:0[0134]|22) /, context },
  )
}

browserTest(
  'long names without a space fit into the narrowest window',
  async ({ t, page }) => {
    const gate = new Gate()
    gate.open()
    const site = await pagesSite(t, { gate })
    const { models, versions, automations, runs } = site.extension.project('p')
    const name = 'Überlänge'.repeat(20)
    const { id: modelId } = await models.create({ name })
    await versions.create(modelId, { rootObjectId: 'root', message: name.repeat(3), source: name })
    const { id } = await automations.create({
      name,
      functionId: 'checker',
      modelId,
      inputs: { owner: 'Ada', analysis: 'thermal', apiKey: 'correct horse', remark: name },
      trigger: 'manual',
    })
    const run = await runs.start(id)
    await site.extension.idle()
    await signInByToken(page, site)
    for (const path of [
      '',
      `/models/${modelId}`,
      `/models/${modelId}/usage`,
      '/usage',
      `/automations/${id}`,
      `/automations/${id}/edit`,
      '/runs',
      `/runs/${run.id}`,
      `/runs/${run.id}/logs`,
      '/functions/checker/new',
    ]) {
      await page.goto(`${site.url}/web/projects/p${path}`)
      assert.equal(
        await page.locator('html').evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
        0,
        path,
      )
      assert.equal(
        await page
          .getByRole('link', { name: 'Stowage', exact: true })
          .evaluate(({ clientHeight }) => clientHeight < 48),
        true,
        `${path}: the top stays one line`,
      )
    }
  },
  { mayLog, context: { viewport: { width: 320, height: 600 } } },
)
