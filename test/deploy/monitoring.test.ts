import assert from 'node:assert/strict'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../bench/free-port.ts'
import { REPOSITORY } from '../../bench/repository.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { deployFile, deployPath, runToEnd, scratchFolder, startProgram, startUpstream } from './support.ts'

interface Board {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[]
}

/**
 * Rules and panels that name a metric which a quiet server does not show yet: a counter with labels begins with its
 * first event.
 */
const SHOWN_LATER: ReadonlySet<string> = new Set([
  'stowage_errors_total',
  'stowage_limit_hits_total',
  'stowage_connection_limit_hits_total',
  'stowage_incomplete_answers_total',
  'stowage_downloads_total',
])

void test('each alert fires for its own cause and no other', () => {
  runToEnd('promtool', ['check', 'rules', deployPath('alerts.yml')])
  runToEnd('promtool', ['test', 'rules', join(REPOSITORY, 'test/deploy/alerts-test.yml')])
})

void test('Prometheus scrapes a server, loads the rules and answers every query of the dashboard', async (t) => {
  const upstream = await startUpstream(t)
  const folder = scratchFolder(t)
  const settings = await deployFile('prometheus.yml', {
    '127.0.0.1:9464': new URL(upstream.metricsUrl).host,
    'scrape_interval: 15s': 'scrape_interval: 1s\n    scrape_timeout: 1s',
  })
  await writeFile(join(folder, 'prometheus.yml'), settings)
  await copyFile(deployPath('alerts.yml'), join(folder, 'alerts.yml'))
  const port = await freePort()
  const config = ['--config.file', join(folder, 'prometheus.yml'), '--storage.tsdb.path', join(folder, 'data')]
  await startProgram(t, ['prometheus', ...config, '--web.listen-address', `127.0.0.1:${port}`], { port })
  const query = async (expr: string): Promise<readonly unknown[]> => {
    const url = new URL(`http://127.0.0.1:${port}/api/v1/query`)
    url.searchParams.set('query', expr)
    const { status, error, data } = (await (await fetch(url)).json()) as QueryAnswer
    assert.equal(status, 'success', `${expr}: ${error}`)
    return data.result
  }
  await fetch(`http://127.0.0.1:${upstream.port}/api/openapi.json`)
  for (
    const deadline = performance.now() + PATIENCE_MS;
    (await query('stowage_requests_total > 0')).length === 0;
    await delay(200)
  )
    assert.ok(performance.now() < deadline, 'Prometheus saw no metrics')
  const rules = (await (await fetch(`http://127.0.0.1:${port}/api/v1/rules`)).json()) as RulesAnswer
  const alerts = rules.data.groups.flatMap((group) => group.rules)
  assert.ok(alerts.length >= 12)
  const { panels } = JSON.parse(await deployFile('grafana.json')) as Board
  const questions = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
  assert.ok(questions.length >= 10)
  for (const { title, expr } of questions) {
    assert.match(expr, /instance=~"\$instance"/, `${title} shows the chosen server`)
    await query(expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*'))
  }
  for (const name of new Set(
    [...alerts.map(({ query: expr }) => expr), ...questions.map(({ expr }) => expr)].flatMap(metricsOf),
  ))
    if (!SHOWN_LATER.has(name)) assert.notDeepEqual(await query(`{__name__="${name}"}`), [], `no server has ${name}`)
})

interface QueryAnswer {
  readonly status: string
  readonly error?: string
  readonly data: { readonly result: readonly unknown[] }
}

interface RulesAnswer {
  readonly data: { readonly groups: readonly { readonly rules: readonly { readonly query: string }[] }[] }
}

function metricsOf(expr: string): readonly string[] {
  return expr.match(/\b(?:stowage|nodejs|process)_\w+|\bup\b/g) ?? []
}

void test('metrics that a quiet server does not show exist', async () => {
  const sources = ['src/metrics/metrics.ts', 'src/cli/server/health-and-metrics.ts']
  const source = (await Promise.all(sources.map((file) => readFile(join(REPOSITORY, file), 'utf8')))).join('\n')
  for (const name of SHOWN_LATER)
    assert.ok(source.includes(`'${name}'`) || source.includes(`'${name.slice('stowage_'.length)}'`), name)
})
