import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Annotation } from '../../src/automation/index.ts'
import { running } from './support.ts'

function result(changes: Partial<Annotation> = {}): Annotation {
  return { category: 'Fire', level: 'ERROR', objectAppIds: { a: null }, message: null, metadata: null, ...changes }
}

test('annotations are filtered by level, category and object, and the pages together contain all', async (t) => {
  const { report, project, id } = await running(t)
  const many = Array.from({ length: 700 }, (_, at) =>
    result({ objectAppIds: { [`object ${at}`]: `app ${at}` }, message: `${'x'.repeat(100)} ${at}` }),
  )
  await report({ sequence: 1, annotations: many })
  await report({
    sequence: 2,
    annotations: [
      result({ category: 'Stairs', level: 'INFO' }),
      result({ level: 'WARNING', objectAppIds: { 'object 7': null, __proto__: null } }),
    ],
  })
  const seen: Annotation[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await project.runs.annotations(id, { limit: 300, ...(cursor === undefined ? {} : { cursor }) })
    seen.push(...page.items)
    cursor = page.cursor
  }
  assert.deepEqual(seen.slice(0, 700), many)
  assert.equal(seen.length, 702)
  assert.deepEqual(
    (await project.runs.annotations(id, { objectId: 'object 7' })).items.map(({ level }) => level),
    ['ERROR', 'WARNING'],
  )
  assert.deepEqual(
    (await project.runs.annotations(id, { category: 'Stairs' })).items.map(({ level }) => level),
    ['INFO'],
  )
  assert.equal((await project.runs.annotations(id, { level: 'WARNING' })).items.length, 1)
  assert.deepEqual((await project.runs.get(id)).annotations, { SUCCESS: 0, INFO: 1, WARNING: 1, ERROR: 700 })
})

test('of many concurrent reports, each is stored once and exactly one final status wins', async (t) => {
  const { report, project, id } = await running(t)
  await report({ sequence: 1, status: 'running' })
  const outcomes = await Promise.allSettled(
    (['succeeded', 'failed', 'exception'] as const).map((status) =>
      report({ sequence: 2, status, message: status, annotations: [result({ category: status })] }),
    ),
  )
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  const run = await project.runs.get(id)
  assert.equal(run.message, run.status)
  assert.deepEqual(
    (await project.runs.annotations(id)).items.map(({ category }) => category),
    [run.status],
  )
})

test('of three concurrent final reports over HTTP, one succeeds and the others conflict', async (t) => {
  const { ask, project, id, token } = await running(t)
  const answers = await Promise.all(
    (['succeeded', 'failed', 'exception'] as const).map((status) =>
      ask(
        'POST',
        `p/runs/${id}/report`,
        { sequence: 1, status, message: status, annotations: [result({ category: status })] },
        token,
      ),
    ),
  )
  assert.deepEqual(
    answers.map(({ status }) => status).sort((a, b) => a - b),
    [200, 409, 409],
  )
  const run = await project.runs.get(id)
  assert.deepEqual(
    [run.message, (await project.runs.annotations(id)).items.map(({ category }) => category)],
    [run.status, [run.status]],
  )
})

test('annotations over the limit of a run are refused whole, and further log lines are dropped', async (t) => {
  const { report, project, id } = await running(t, { limits: { annotationObjectsMax: 3, logBytesMax: 2_000 } })
  await report({ sequence: 1, annotations: [result({ objectAppIds: { a: null, b: null } })] })
  await assert.rejects(
    report({ sequence: 2, status: 'running', annotations: [result({ objectAppIds: { c: null, d: null } })] }),
    { code: 'annotations_too_large', statusCode: 413 },
  )
  assert.equal((await project.runs.get(id)).status, 'pending')
  await report({
    sequence: 2,
    logs: Array.from({ length: 100 }, (_, atMs) => ({ atMs, level: 'info' as const, message: 'a line of the log' })),
  })
  const { items } = await project.runs.logs(id, { limit: 1_000 })
  assert.ok(items.length > 10 && items.length < 100)
  assert.deepEqual(
    items.map(({ atMs }) => atMs),
    items.map((_, at) => at),
  )
  assert.equal((await project.runs.get(id)).logsTruncated, true)
})

test('log lines come in pages, and long lines are cut between characters', async (t) => {
  const { report, project, id } = await running(t)
  const line = (message: string) => ({ atMs: 1, level: 'warn' as const, message })
  const logs = [
    ...Array.from({ length: 20 }, (_, at) => line(`${at} ${'\u0007'.repeat(3_000)}`)),
    line('\u0007'.repeat(16_000)),
  ]
  await report({ sequence: 1, logs })
  const first = await project.runs.logs(id, { limit: 15 })
  const rest = await project.runs.logs(id, { limit: 15, cursor: first.cursor ?? '' })
  const all = [...first.items, ...rest.items]
  assert.deepEqual(
    all.map(({ message }) => message.length),
    [...logs.slice(0, 20).map(({ message }) => message.length), 6_000],
  )
  assert.ok(all.every(({ message }, at) => at === 20 || message === logs[at].message))
  assert.deepEqual([first.items.length, rest.cursor], [15, null])
})

test('an unknown cursor is refused', async (t) => {
  const { report, project, id } = await running(t)
  await report({ sequence: 1, annotations: [result()], logs: [{ atMs: 1, level: 'info', message: 'a line' }] })
  for (const cursor of ['-1.0', '0.-1', '0', '0.0.0', '1e.', 'x.y', '-0000001', '1', 'zzzzzzzz', '000000000']) {
    await assert.rejects(project.runs.annotations(id, { cursor }), { code: 'invalid_request' }, cursor)
    await assert.rejects(project.runs.logs(id, { cursor }), { code: 'invalid_request' }, cursor)
  }
})

test('the result of a function is kept with its run', async (t) => {
  const { report, project, id } = await running(t)
  const handed = { walls: 12, text: '"é\u0000'.repeat(8_000) }
  assert.equal((await project.runs.get(id)).result, null)
  await report({ sequence: 1, status: 'succeeded', message: 'done', result: handed })
  assert.deepEqual((await project.runs.get(id)).result, handed)
})

test('a malformed report is refused with the name of the wrong member', async (t) => {
  const { ask, id, token } = await running(t)
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [{}, /sequence must be an integer/],
    [{ sequence: 0 }, /sequence/],
    [{ sequence: 1, state: 'done' }, /unknown member "state"/],
    [{ sequence: 1, status: 'canceled' }, /status must be one of/],
    [{ sequence: 1, progress: { fraction: 2 } }, /progress\.fraction/],
    [{ sequence: 1, annotations: [{ ...result(), level: 'FATAL' }] }, /annotations\[0\]\.level/],
    [{ sequence: 1, annotations: [result({ category: 'two\nlines' })] }, /annotations\[0\]\.category/],
    [{ sequence: 1, logs: [{ atMs: 1, level: 'info' }] }, /logs\[0\]\.message/],
    [[], /body must be an object/],
  ]
  for (const [body, message] of wrong) {
    const { status, json } = await ask('POST', `p/runs/${id}/report`, body, token)
    assert.equal(status, 400)
    assert.match(json.message, message)
  }
  assert.equal((await ask('POST', `p/runs/${id}/report`, '{"sequence":1,', token)).json.code, 'invalid_json')
  assert.equal((await ask('POST', `p/runs/${id}/report`, 'x', { ...token, 'Content-Type': 'text/plain' })).status, 415)
})

test('the token of a run reaches only its own run and project, until the run ends', async (t) => {
  const { ask, id, token, report, project, automation, start } = await running(t)
  const other = await project.runs.start(automation.id)
  assert.equal((await ask('GET', `p/runs/${id}`, undefined, token)).status, 200)
  assert.equal((await ask('GET', 'other/runs', undefined, token)).status, 403)
  assert.equal((await ask('POST', `p/runs/${other.id}/report`, { sequence: 1 }, token)).status, 403)
  assert.equal((await ask('POST', `p/automations/${automation.id}/runs`, {}, token)).status, 403)
  assert.equal((await ask('POST', `p/runs/${id}/report`, { sequence: 1 })).status, 403, 'who may write is not the run')
  const version = await ask(
    'POST',
    `p/models/${start.run.modelId}/versions`,
    { rootObjectId: 'root', message: 'by the usual path' },
    token,
  )
  assert.equal(version.json.runId, id)
  const cut = `${start.runFile.speckleToken.slice(0, -6)}AAAAAA`
  assert.equal((await ask('GET', 'p/runs', undefined, { Authorization: `Bearer ${cut}` })).status, 401)
  const final = { sequence: 1, status: 'succeeded', message: 'done' } as const
  await report(final)
  assert.equal((await ask('GET', 'p/runs', undefined, token)).status, 401)
  assert.equal((await ask('POST', `p/runs/${id}/report`, final, token)).status, 200)
  assert.equal((await ask('POST', `p/runs/${id}/report`, { ...final, status: 'failed' }, token)).status, 409)
  assert.equal((await ask('POST', `p/runs/${id}/lease`, {}, token)).json.status, 'succeeded')
})

test('the server redacts the secrets that a program without the SDK reports', async (t) => {
  const { ask, service, id, token, start, project } = await running(t)
  const told = `the key is hush, the token ${start.runFile.speckleToken}`
  const annotations = [
    result({ category: 'hush', objectAppIds: { a: told }, message: told, metadata: { hush: ['hush'] } }),
  ]
  const made = await ask(
    'POST',
    `p/runs/${id}/versions`,
    { modelId: start.run.modelId, rootObjectId: 'root', message: told },
    token,
  )
  assert.equal(made.status, 201)
  const { modelId } = start.run
  assert.equal((await ask('POST', 'p/models', { name: 'hush' }, token)).status, 201)
  assert.equal(
    (
      await ask(
        'POST',
        `p/models/${modelId}/versions`,
        { rootObjectId: 'root', message: 'hush', source: 'hush' },
        token,
      )
    ).status,
    201,
  )
  const sent = await service.fetch(
    new Request(`http://in.process/api/v1/projects/p/runs/${id}/artifacts?name=hush.csv`, {
      method: 'POST',
      body: 'a',
      headers: token,
    }),
  )
  assert.equal(sent.status, 201)
  const { speckleToken } = start.runFile
  const encoded = [
    '%68us%68',
    '\\u0068ush',
    Buffer.from(`x:${speckleToken}`).toString('base64'),
    Buffer.from(speckleToken).toString('hex'),
  ]
  const logs = [told, ...encoded].map((message) => ({ atMs: 1, level: 'info', message }))
  const report = {
    sequence: 1,
    status: 'failed',
    message: told,
    result: { key: 'hush' },
    progress: { fraction: 1, message: 'hush' },
    annotations,
    logs,
  }
  for (let times = 0; times < 2; times++)
    assert.equal((await ask('POST', `p/runs/${id}/report`, report, token)).status, 200)
  const lines = await project.runs.logs(id)
  const seen = JSON.stringify([
    await project.runs.get(id),
    await project.runs.annotations(id),
    lines,
    await project.versions.list(modelId),
    await project.models.list(),
  ])
  assert.doesNotMatch(seen, /hush|eyJ|%68|u0068/)
  assert.deepEqual(
    lines.items.slice(1).map(({ message }) => message.length < 20),
    [true, true, true, true],
  )
  assert.match(seen, /the key is \*{6}, the token \*{6}/)
})

test('secrets reach the run and appear in no response', async (t) => {
  const { ask, start, automation, backend } = await running(t)
  assert.equal(start.runFile.functionInputs?.apiKey, 'hush')
  assert.ok(start.secretTexts.includes('hush') && start.secretTexts.includes(start.runFile.speckleToken))
  for (const path of ['p/automations', `p/automations/${automation.id}`, 'p/runs'])
    assert.doesNotMatch(JSON.stringify((await ask('GET', path)).json), /hush/)
  for await (const entries of backend.records.range({ gte: Buffer.from('x'), lt: Buffer.from('y') })) {
    for (const { value } of entries) assert.doesNotMatch(Buffer.from(value).toString('latin1'), /hush/)
  }
})
