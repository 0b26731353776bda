import assert from 'node:assert/strict'
import { started } from '../mounts/started.ts'
import { buildModel, jsonArray } from '../support/model.ts'
import { browserTest, screenshot } from './support/browser.ts'

const OBJECTS = 3_000
const model = buildModel({ objects: OBJECTS })

browserTest(
  'a page of a host signs in, downloads a model and shows what it got',
  async ({ t, page }) => {
    const { url, service } = await started(t, () => import('../mounts/examples/viewer.ts'))
    await service.project('demo').upload(new Blob([jsonArray(model.objects)]).stream(), 'application/json')
    assert.equal((await fetch(`${url}/models/objects/demo/${model.rootId}`)).status, 401)
    await page.goto(`${url}/?model=${model.rootId}`)
    await page.getByLabel('Password').fill('guess')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('This is not the password.').waitFor()
    await page.getByLabel('Password').fill('open sesame')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Download' }).click()
    await page.getByRole('table').waitFor()
    const shown = await page.getByRole('status').innerText()
    assert.match(shown, new RegExp(`^${model.objects.length.toLocaleString('en')} objects, \\d+\\.\\d MB$`))
    const total = (await page.locator('td + td').allInnerTexts()).reduce(
      (sum, text) => sum + Number(text.replaceAll(',', '')),
      0,
    )
    assert.equal(total, model.objects.length)
    t.diagnostic(await screenshot(page, 'downloaded'))
    await page.getByLabel('Model').fill('nothing')
    await page.getByRole('button', { name: 'Download' }).click()
    await page
      .getByRole('alert')
      .filter({ hasText: /nothing/ })
      .waitFor()
  },
  { mayLog: /status of 40[14]/ },
)
