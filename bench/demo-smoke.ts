import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Annotation } from '../src/automation/index.ts'
import type { Page, Run, RunDetails, Version } from '../src/automation-server/index.ts'
import { askAutomation, type DemoAutomations } from './demo-automation.ts'
import type { ModelObject } from './model/building.ts'
import type { Demo, DemoPages } from './demo-content.ts'
import type { Target } from './upload.ts'

/* What `--smoke` tries of the demo: every line, the link that signs a browser in, and each function, which runs to its end over HTTP and did what it is for. */

const LINE_TIMEOUT_MS = 60_000
const runProgram = promisify(execFile)
const RUN_MS_MAX = 180_000
const POLL_MS = 100
const FINAL: ReadonlySet<Run['status']> = new Set(['succeeded', 'failed', 'canceled', 'exception', 'timeout'])

/** Throws for the first thing that is not as it should be. */
export async function tryAll(pages: DemoPages, { target, objects, automations, requests }: Demo): Promise<void> {
  const env = { ...process.env, STOWAGE: target.url, TOKEN: target.token }
  for (const { endpoint, command, prints } of requests) {
    const { stdout } = await runProgram('bash', ['-c', `set -e; ${command}`], { env, timeout: LINE_TIMEOUT_MS })
    if (!prints.test(stdout))
      throw new Error(
        `${endpoint} answered what was not expected. The line was\n${command}\nand it printed\n${stdout.slice(0, 1_000)}`,
      )
  }
  console.log('\nEvery line was tried and answered as it should.')
  await trySignIn(pages)
  await tryAutomations(target, automations, objects)
}

async function tryAutomations(target: Target, demo: DemoAutomations, model: readonly ModelObject[]): Promise<void> {
  const [checked, takenOff, renamed] = await Promise.all(
    ['rule-checker', 'quantity-take-off', 'level-renamer'].map((functionId) => ran(target, demo, functionId)),
  )
  const elements = model
    .map(({ id, json }) => ({ id, ...(JSON.parse(json) as DemoElement) }))
    .filter(({ applicationId, parameters }) => applicationId !== undefined && parameters !== undefined)
  await assertChecked(target, checked, elements)
  await assertTakenOff(target, takenOff, elements.length)
  await assertRenamed(target, demo, renamed)
  await assertNoLoop(target, demo)
}

/** As a browser does it: the link shows a page with one button. */
async function trySignIn({ pagesUrl = '', signInUrl = '' }: DemoPages): Promise<void> {
  const { origin, pathname, searchParams } = new URL(signInUrl)
  const page = await (await fetch(signInUrl)).text()
  assert.ok(page.includes(searchParams.get('code') ?? ''))
  const answer = await fetch(`${origin}${pathname}`, {
    method: 'POST',
    headers: { Origin: origin },
    body: new URLSearchParams({ code: searchParams.get('code') ?? '' }),
    redirect: 'manual',
  })
  assert.equal(answer.status, 303)
  const home = await fetch(pagesUrl, {
    headers: { Cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '' },
    redirect: 'manual',
  })
  assert.equal(home.status, 200)
  assert.match(await home.text(), /demo/)
  console.log('The link signs a browser in.')
}

interface DemoElement {
  readonly category?: string
  readonly applicationId?: string
  readonly parameters?: Readonly<Record<string, { readonly value: unknown } | undefined>>
}

/** Starts the automation of a function by hand, on the version that was uploaded. */
async function ran(
  target: Target,
  { automationIds, firstVersionId }: DemoAutomations,
  functionId: string,
): Promise<RunDetails> {
  const { id } = await askAutomation<Run>(target, `automations/${automationIds.get(functionId)}/runs`, 'POST', {
    versionId: firstVersionId,
  })
  return ended(target, id)
}

async function ended(target: Target, runId: string): Promise<RunDetails> {
  for (const lateAtMs = Date.now() + RUN_MS_MAX; Date.now() < lateAtMs; await wait(POLL_MS)) {
    const run = await askAutomation<RunDetails>(target, `runs/${runId}`)
    if (FINAL.has(run.status)) return run
  }
  throw new Error(`a run did not end within ${RUN_MS_MAX} ms`)
}

async function assertChecked(
  target: Target,
  { id, status, message }: RunDetails,
  elements: readonly (DemoElement & { readonly id: string })[],
): Promise<void> {
  const unrated = elements.filter(
    ({ category, parameters }) => category === 'Wall' && typeof parameters?.['Fire Rating']?.value !== 'string',
  )
  const { items } = await askAutomation<Page<Annotation>>(target, `runs/${id}/annotations?limit=1000`)
  assert.equal(status, 'failed', message ?? '')
  assert.deepEqual(
    new Set(items.flatMap(({ objectAppIds }) => Object.keys(objectAppIds))),
    new Set(unrated.map((wall) => wall.id)),
  )
  assert.deepEqual([...new Set(items.map(({ level }) => level))], ['ERROR'])
  console.log(`The rule checker marked exactly the ${unrated.length} walls without a fire rating.`)
}

async function assertTakenOff(
  target: Target,
  { status, message, artifacts }: RunDetails,
  elements: number,
): Promise<void> {
  assert.deepEqual([status, artifacts.length], ['succeeded', 1], message ?? '')
  const response = await fetch(`${target.url}/api/v1/projects/${target.projectId}/artifacts/${artifacts[0].id}`, {
    headers: { Authorization: `Bearer ${target.token}` },
  })
  assert.match(response.headers.get('content-disposition') ?? '', /^attachment; filename="Take-off\.csv"/)
  const [header, ...rows] = (await response.text())
    .trimEnd()
    .split('\r\n')
    .map((line) => line.split(','))
  assert.equal(header.join(), 'Category,Level,Elements,Length (m),Area (m²),Volume (m³)')
  assert.equal(
    rows.reduce((sum, [, , count]) => sum + Number(count), 0),
    elements,
  )
  console.log(`The take-off is a file of ${rows.length} rows about ${elements} elements.`)
}

async function assertRenamed(
  target: Target,
  { modelId }: DemoAutomations,
  { id, status, message, createdVersions }: RunDetails,
): Promise<void> {
  assert.deepEqual([status, createdVersions.length], ['succeeded', 1], message ?? '')
  const { runId, rootObjectId } = await askAutomation<Version>(
    target,
    `models/${modelId}/versions/${createdVersions[0].versionId}`,
  )
  assert.equal(runId, id)
  const response = await fetch(`${target.url}/objects/${target.projectId}/${rootObjectId}`, {
    headers: { Authorization: `Bearer ${target.token}` },
  })
  const objects = (await response.json()) as readonly { readonly name?: string; readonly collectionType?: string }[]
  const names = objects.filter(({ collectionType }) => collectionType === 'level').map(({ name = '' }) => name)
  assert.ok(names.length > 0 && names.every((name) => name.startsWith('Block A: Level ')), names.join())
  console.log(`The renamer made a version whose ${names.length} levels have new names.`)
}

/** Makes the renamer wait for versions, as the others do, and create one: that starts the others, and not itself. */
async function assertNoLoop(target: Target, demo: DemoAutomations): Promise<void> {
  const path = `automations/${demo.automationIds.get('level-renamer')}`
  await askAutomation(target, path, 'PATCH', { trigger: 'version' })
  const { id, createdVersions } = await ran(target, demo, 'level-renamer')
  await askAutomation(target, path, 'PATCH', { trigger: 'manual' })
  const { items } = await askAutomation<Page<Run>>(target, `runs?versionId=${createdVersions[0].versionId}`)
  const started = await Promise.all(items.map((run) => ended(target, run.id)))
  assert.deepEqual(
    started.map(({ functionId }) => functionId).toSorted((a, b) => a.localeCompare(b)),
    ['quantity-take-off', 'rule-checker'],
  )
  const { items: own } = await askAutomation<Page<Run>>(
    target,
    `runs?automationId=${demo.automationIds.get('level-renamer')}&limit=1`,
  )
  assert.equal(own[0].id, id)
  console.log('Its version started the other two automations, and not its own.')
}
