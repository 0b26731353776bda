import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OpenApiDocument } from '../../src/openapi/description/types.ts'
import { openService } from '../http/served.ts'
import { HOSTS, listen } from './hosts.ts'

for (const host of HOSTS) {
  void test(`${host.name}: the description names the mount point`, async (t) => {
    for (const [mount, prefix] of [
      ['', undefined],
      ['/models', undefined],
      ['/a/b', '/own'],
    ]) {
      const service = openService(prefix === undefined ? {} : { prefix })
      t.after(() => service.close({ graceMs: 0 }))
      const port = await listen(t, await host.open(service, mount ?? ''), service)
      const begin = `http://127.0.0.1:${port}${mount}${prefix ?? ''}`
      const answer = await fetch(`${begin}/api/openapi.json`)
      assert.equal(answer.status, 200)
      const [{ url }] = ((await answer.json()) as OpenApiDocument).servers
      // As OpenAPI 3.1 has it, a relative server is relative to the document.
      const server = new URL(url, answer.url).href.replace(/\/$/, '')
      assert.equal(server, begin)
      assert.equal((await fetch(`${server}/api/diff/p`, { method: 'DELETE' })).status, 405)
    }
  })
}
