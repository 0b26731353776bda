import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimAuthorize, type Principal } from '../../src/index.ts'
import { automated, definition, inProcess, withAutomation, withVersion } from './support.ts'

test('the token of a run is valid for its own project only, regardless of the project id', async (t) => {
  const owner: Principal = { subject: 'owner', projects: { '*': 'write' } }
  const access = {
    authenticate: ({ headers }: { readonly headers: Headers }) =>
      headers.get('x-who') === 'owner' ? owner : undefined,
    authorize: claimAuthorize,
  }
  let begun: (token: string) => void = () => undefined
  const token = new Promise<string>((resolve) => {
    begun = resolve
  })
  const executor = inProcess(async ({ runFile }, stopped) => {
    begun(runFile.speckleToken)
    await stopped
  })
  const { ask, ...fixture } = automated(t, { functions: [definition(executor)], service: { access } })
  const { project, automation } = await withAutomation(fixture, {}, '*')
  await withVersion(fixture, 'other')
  await project.runs.start(automation.id)
  const headers = { Authorization: `Bearer ${await token}` }
  assert.equal((await ask('GET', '*/models', undefined, headers)).status, 200)
  for (const [method, path] of [
    ['GET', 'other/models'],
    ['POST', 'other/models'],
    ['GET', 'other/runs'],
  ])
    assert.equal((await ask(method, path, method === 'POST' ? { name: 'x' } : undefined, headers)).status, 403, path)
})
