import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { memoryBackend } from '../../adapters/memory/index.ts'
import type { StorageBackend } from '../../src/index.ts'
import { waiting } from '../automation-server/support.ts'
import { sharing } from '../store/failures.ts'
import { everyKind, RIGHT_FORM } from './kinds.ts'
import { type Paged, paged, type Shown, signedIn, textOf, type Visitor, withVersion } from './support.ts'

const NEW = '/web/projects/p/functions/checker/new'
const FORM_TYPE = { 'sec-fetch-site': 'same-origin' }

interface Open extends Paged {
  readonly visitor: Visitor
  readonly modelId: string
  readonly form: Readonly<Record<string, string>>
}

async function opened(t: TestContext): Promise<Open> {
  const parts = paged(t, { functions: [everyKind(waiting)] })
  const { modelId } = await withVersion(parts)
  return { ...parts, modelId, form: { ...RIGHT_FORM, modelId }, visitor: await signedIn(parts.service) }
}

/** The tag of a control, by its name. */
function control(html: string, name: string): string {
  const tag = new RegExp(`<(?:input|select|textarea)[^>]* name="${name.replaceAll('.', '\\.')}"[^>]*>`).exec(html)?.[0]
  assert.ok(tag !== undefined, `there is a control ${name}`)
  return tag
}

function idOf(tag: string): string {
  return /\bid="([^"]+)"/.exec(tag)?.[1] ?? ''
}

/**
 * That something is said beside the control and at the top, that both are tied to it, and that nothing else is wrong.
 */
function assertComplaint({ status, html }: Shown, name: string, message: string): void {
  assert.equal(status, 422, message)
  const tag = control(html, name)
  const id = name === 'trigger' ? 'trigger-version' : idOf(tag)
  const plain = textOf(html)
  assert.ok(html.includes(`<p class="complaint" id="${id}-error">`), `${message} stands beside ${name}: ${plain}`)
  assert.ok(plain.includes(`Error: ${message}`), `${message} in ${plain}`)
  assert.match(plain, /^Skip to the content Stowage Ada Sign out Projects p (?:Nightly check )?There is a problem /)
  assert.ok(html.includes(`<a href="#${id}">`), 'the summary leads to the field')
  assert.match(html, /<title>.{0,2}Error: /u)
  assert.equal(html.match(/class="complaint"/g)?.length, 1, 'nothing else is wrong')
  if (name === 'trigger') return
  assert.match(tag, /aria-invalid="true"/)
  assert.match(tag, new RegExp(`aria-describedby="[^"]*\\b${id}-error"`))
}

const INVALID: readonly (readonly [name: string, value: string, message: string])[] = [
  ['name', '', 'Name is required.'],
  ['name', 'x'.repeat(201), 'Name must be one line of at most 200 characters.'],
  ['name', 'two\nlines', 'Name must be one line of at most 200 characters.'],
  ['modelId', '', 'Model is required.'],
  ['modelId', '0'.repeat(32), 'Model must be one of this project.'],
  ['modelId', '../x', 'Model must be one of this project.'],
  ['trigger', 'sometimes', 'The trigger must be one of the choices.'],
  ['input.owner', '', 'Project owner is required.'],
  ['input.owner', 'A', 'Project owner must have at least 2 characters.'],
  ['input.owner', `A${'b'.repeat(20)}`, 'Project owner must have at most 20 characters.'],
  ['input.owner', 'ada', 'Project owner must match the pattern ^[A-Z][a-z ]*$.'],
  ['input.remark', 'x'.repeat(1_001), 'Remark must have at most 1000 characters.'],
  ['input.tolerance', 'abc', 'Tolerance must be a number.'],
  ['input.tolerance', '1e999', 'Tolerance must be a number.'],
  ['input.tolerance', '0x10', 'Tolerance must be a number.'],
  ['input.tolerance', '0', 'Tolerance must be greater than 0.'],
  ['input.tolerance', '100', 'Tolerance must be less than 100.'],
  ['input.floors', '2.5', 'Floors must be a whole number.'],
  ['input.floors', 'two', 'Floors must be a whole number.'],
  [
    'input.floors',
    '9007199254740993',
    'Floors must be from -9007199254740991 to 9007199254740991, where whole numbers are exact.',
  ],
  ['input.floors', '0', 'Floors must be 1 or more.'],
  ['input.floors', '6', 'Floors must be 5 or less.'],
  ['input.strict', 'maybe', 'Be strict must be true or false.'],
  ['input.rounding', 'maybe', 'Round lengths must be true or false.'],
  ['input.analysis', '', 'Analysis is required.'],
  ['input.analysis', 'magic', 'Analysis must be one of the choices.'],
  ['input.unit', 'ft', 'Unit must be one of the choices.'],
  ['input.apiKey', '', 'API key is required.'],
  ['input.apiKey', 'short', 'API key must have at least 8 characters.'],
]

test('errors of each kind of input appear beside it and at the top, and nothing is created', async (t) => {
  const { visitor, form, extension } = await opened(t)
  for (const [name, value, message] of INVALID)
    assertComplaint(await visitor.post(NEW, { ...form, [name]: value }), name, message)
  assert.deepEqual((await extension.project('p').automations.list()).items, [])
})

test('submitted values stay in the form, except secrets', async (t) => {
  const { visitor, form } = await opened(t)
  const sent = {
    ...form,
    name: '"Check" <b>',
    enabled: '',
    trigger: 'manual',
    'input.owner': '1"><script>',
    'input.remark': '\nfirst\r\n</textarea><b>',
    'input.tolerance': ' 1,5 ',
    'input.strict': '',
    'input.rounding': 'false',
    'input.apiKey': 'hunter2',
    'input.spareKey': 'hunter3-spare',
  }
  const { status, html } = await visitor.post(NEW, sent)
  assert.equal(status, 422)
  assert.ok(!/hunter[23]/.test(html), 'no secret comes back')
  assert.match(control(html, 'name'), / value="&quot;Check&quot; &lt;b&gt;"/)
  assert.match(control(html, 'input.owner'), / value="1&quot;&gt;&lt;script&gt;"/)
  assert.match(html, /<textarea[^>]*name="input\.remark"[^>]*>\n\nfirst\r?\n&lt;\/textarea&gt;&lt;b&gt;<\/textarea>/)
  assert.match(control(html, 'input.tolerance'), / value=" 1,5 "/)
  assert.doesNotMatch(control(html, 'input.strict'), /checked/)
  assert.doesNotMatch(control(html, 'enabled'), /checked/)
  assert.match(html, /id="trigger-manual"[^>]* checked/)
  assert.match(html, /<option value="false" selected[^>]*>No<\/option>/)
  assert.match(html, /<option dir="auto" value="thermal" selected/)
  assert.ok(!html.includes('<script>'))
})

test('the form shows its requirements before any error', async (t) => {
  const { visitor, modelId } = await opened(t)
  const { status, html } = await visitor.get(`${NEW}?modelId=${modelId}`)
  assert.equal(status, 200)
  const plain = textOf(html)
  for (const words of [
    'New automation of Checker',
    'Checks a building against rules.',
    'What to check',
    'Project owner Who is told about the result. 2 to 20 characters. Matches the pattern ^[A-Z][a-z ]*$.',
    'Remark (optional) 1,000 characters at most.',
    'Tolerance In millimetres. A number, greater than 0 and less than 100. If empty: 10.',
    'Floors (optional) A whole number from 1 to 5.',
    'Structural analysis',
    'API key 8 characters at least.',
  ])
    assert.ok(plain.includes(words), `${words} in ${plain}`)
  assert.match(control(html, 'input.tolerance'), / value="10"/)
  assert.match(control(html, 'input.strict'), /type="checkbox".* checked/)
  assert.match(control(html, 'input.apiKey'), /type="password" autocomplete="new-password"/)
  for (const label of html.matchAll(/<label for="([^"]+)"/g)) assert.ok(html.includes(`id="${label[1]}"`), label[1])
  for (const described of html.matchAll(/aria-describedby="([^"]+)"/g))
    for (const id of described[1].split(' ')) assert.ok(html.includes(`id="${id}"`), id)
})

test('a valid form creates an automation, which can be changed, started and deleted', async (t) => {
  const { visitor, form, modelId, extension } = await opened(t)
  const { automations, runs } = extension.project('p')
  const made = await visitor.post(NEW, { ...form, 'input.remark': 'one\r\ntwo' })
  const location = made.headers.get('location') ?? ''
  assert.equal(made.status, 303)
  const [automation] = (await automations.list()).items
  assert.equal(location, `/web/projects/p/automations/${automation.id}`)
  const { id, createdAt: _made, updatedAt: _changed, ...rest } = automation
  const inputs = {
    owner: 'Ada',
    remark: 'one\ntwo',
    tolerance: 12.5,
    floors: 3,
    strict: true,
    analysis: 'thermal',
    unit: 'm',
    apiKey: '******',
  }
  assert.deepEqual(rest, {
    name: 'Nightly check',
    functionId: 'checker',
    modelId,
    inputs,
    trigger: 'manual',
    enabled: true,
    projects: [],
  })
  const plain = textOf((await visitor.get(location)).html)
  for (const words of [
    'Project owner Ada',
    'Tolerance 12.5',
    'Be strict Yes',
    'Round lengths not given',
    'Analysis Thermal analysis',
    'API key stored, not shown',
    'Spare key not given',
    'only when a person starts it',
  ])
    assert.ok(plain.includes(words), words)
  assertComplaint(
    await visitor.post(`${location}/edit`, { ...form, 'input.apiKey': '', 'input.floors': '9' }),
    'input.floors',
    'Floors must be 5 or less.',
  )
  const changed = await visitor.post(`${location}/edit`, {
    ...form,
    name: 'Other',
    trigger: 'version',
    'input.apiKey': '',
    'input.floors': '',
    'input.spareKey': 'second key',
  })
  assert.deepEqual([changed.status, changed.headers.get('location')], [303, location])
  const now = await automations.get(id)
  assert.deepEqual(
    [now.name, now.trigger, now.inputs.floors, now.inputs.apiKey, now.inputs.spareKey],
    ['Other', 'version', undefined, '******', '******'],
  )
  assert.equal(
    (await visitor.post(`${location}/edit`, { ...form, 'input.apiKey': '', 'forget.spareKey': 'true' })).status,
    303,
  )
  assert.equal((await automations.get(id)).inputs.spareKey, undefined)
  const started = await visitor.post(`${location}/run`, {})
  const [run] = (await runs.list()).items
  assert.equal(started.headers.get('location'), `/web/projects/p/runs/${run.id}`)
  const deleted = await visitor.post(`${location}/delete`)
  assert.deepEqual(
    [deleted.status, deleted.headers.get('location'), (await automations.list()).items.length],
    [303, '/web/projects/p', 0],
  )
})

test('a new input stands at its default, and so does a choice that no longer exists', async (t) => {
  const kept = memoryBackend()
  const backend = (): StorageBackend => sharing(kept)
  const before = paged(t, {
    backend: backend(),
    functions: [
      everyKind(waiting, { inputs: { type: 'object', properties: { unit: { type: 'string', enum: ['ft', 'm'] } } } }),
    ],
  })
  const { modelId } = await withVersion(before)
  const { id } = await before.extension
    .project('p')
    .automations.create({ name: 'Check', functionId: 'checker', modelId, inputs: { unit: 'ft' }, trigger: 'manual' })
  await before.service.close()
  const { service } = paged(t, { backend: backend(), functions: [everyKind(waiting)] })
  const { html } = await (await signedIn(service)).get(`/web/projects/p/automations/${id}/edit`)
  assert.match(control(html, 'input.strict'), / checked/)
  assert.match(control(html, 'input.tolerance'), / value="10"/)
  assert.match(html, /<option dir="auto" value="mm" selected[^>]*>mm<\/option>/)
})

test('a submission is bounded, must be a form, and needs the write right', async (t) => {
  const { service, visitor, form } = await opened(t)
  const sent = (
    body: RequestInit['body'],
    type: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Response> =>
    service.fetch(
      new Request(`http://stowage.test${NEW}`, {
        method: 'POST',
        body,
        duplex: 'half',
        headers: { cookie: visitor.cookie, accept: 'text/html', ...FORM_TYPE, 'content-type': type, ...more },
      }),
    )
  const type = 'application/x-www-form-urlencoded'
  assert.equal((await sent(`a=${'x'.repeat(1_048_576)}`, type)).status, 413)
  assert.equal(
    (await sent(new Blob(['x'.repeat(600_000), 'x'.repeat(600_000)]).stream() as unknown as RequestInit['body'], type))
      .status,
    413,
  )
  assert.equal((await sent('a=b&'.repeat(1_001), type)).status, 400)
  assert.equal((await sent('{}', 'text/plain')).status, 415)
  assert.equal((await sent('a=b', 'multipart/form-data; boundary=x')).status, 415)
  assert.equal((await sent('a=b', type, { 'content-encoding': 'gzip' })).status, 415)
  assert.equal((await sent(Buffer.from([0x61, 0x3d, 0xff]), type)).status, 400)
  const reader = await signedIn(service, { p: 'read' })
  for (const path of [NEW, '/web/projects/p/automations/0/run'])
    assert.equal((await reader.post(path, form)).status, 403)
  assert.equal((await reader.get(NEW)).status, 403)
  assert.doesNotMatch((await reader.get('/web/projects/p')).html, /New automation/)
})
