import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { defineFunction, defineInputs } from '../../src/automation/index.ts'
import { claimAuthorize, type Principal } from '../../src/index.ts'
import { automated, uploadObjects, withVersion } from './support.ts'

class Inputs extends defineInputs({}) {}

const PEOPLE: Readonly<Record<string, Principal>> = {
  narrow: { subject: 'narrow', projects: { p: 'write', q: 'read' } },
  wide: { subject: 'wide', projects: { p: 'write', q: 'write' } },
  everywhere: { subject: 'everywhere', projects: { '*': 'write' } },
}

/** Projects p and q, and a function that makes a version in q. */
async function twoProjects(t: TestContext) {
  let target = ''
  const copier = defineFunction(async (context) => {
    await context.createNewVersionInProject('q', { name: 'a copy' }, 'copied', { modelId: target })
    context.markRunSuccess('copied')
  }, Inputs)
  const fixture = automated(t, {
    functions: [{ id: 'copier', release: '1', function: copier }],
    service: {
      access: {
        authenticate: ({ headers }) => PEOPLE[headers.get('authorization')?.slice('Bearer '.length) ?? ''],
        authorize: claimAuthorize,
      },
    },
  })
  const { modelId } = await withVersion(fixture, 'p')
  await uploadObjects(fixture.service, 'q', [{ id: 'other' }])
  target = (await fixture.extension.project('q').models.create({ name: 'Copies' })).id
  const as = (who: string) => ({ authorization: `Bearer ${who}` })
  const made = (who: string, more: object = {}) =>
    fixture.ask(
      'POST',
      'p/automations',
      { name: 'Copy', functionId: 'copier', modelId, inputs: {}, trigger: 'version', ...more },
      as(who),
    )
  const copies = async () => (await fixture.extension.project('q').versions.list(target)).items
  return { ...fixture, modelId, target, as, made, copies }
}

for (const [who, status] of [
  ['narrow', 'exception'],
  ['wide', 'succeeded'],
  ['everywhere', 'succeeded'],
] as const) {
  test(`a run that ${who} starts by hand: ${status} in a project where they may write or not`, async (t) => {
    const { made, ask, as, copies, extension } = await twoProjects(t)
    const { id } = (await made(who)).json
    const started = await ask('POST', `p/automations/${String(id)}/runs`, {}, as(who))
    assert.equal(started.status, 201)
    await extension.idle()
    const run = await extension.project('p').runs.get(started.json.id)
    assert.equal(run.status, status, run.message ?? '')
    assert.equal((await copies()).length, status === 'succeeded' ? 1 : 0)
    if (status === 'succeeded')
      assert.deepEqual(
        [run.createdVersions[0].projectId, run.createdVersions[0].versionId, (await copies())[0].runId],
        ['q', (await copies())[0].id, null],
      )
  })
}

test('an automation may name projects that its author may write; then versions by anyone start such runs', async (t) => {
  const { made, ask, as, copies, extension, modelId } = await twoProjects(t)
  const refused = await made('narrow', { projects: ['q'] })
  assert.deepEqual([refused.status, refused.json.code], [403, 'forbidden'])
  const { id } = (await made('wide', { projects: ['q'] })).json
  const version = { rootObjectId: 'root', message: 'by somebody who may not write in q' }
  assert.equal((await ask('POST', `p/models/${modelId}/versions`, version, as('narrow'))).status, 201)
  await extension.idle()
  assert.equal((await copies()).length, 1)
  const change = await ask('PATCH', `p/automations/${String(id)}`, { inputs: {} }, as('narrow'))
  assert.equal(change.status, 403, 'what its runs do in q is not for them to say')
  assert.equal((await ask('PATCH', `p/automations/${String(id)}`, { projects: [] }, as('wide'))).status, 200)
  await ask('POST', `p/models/${modelId}/versions`, version, as('wide'))
  await extension.idle()
  assert.equal((await copies()).length, 1, 'a version gives nobody rights')
})
