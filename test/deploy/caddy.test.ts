import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'node:tls'
import { proxyCases } from './proxy-cases.ts'
import { PATIENCE_MS } from '../support/patience.ts'
import { freePort } from '../../bench/free-port.ts'
import {
  deployFile,
  deployPath,
  type Proxied,
  runToEnd,
  scratchFolder,
  startProgram,
  startUpstream,
} from './support.ts'

/** Nothing of a test may listen beyond this machine, or change the certificates that it trusts. */
const GLOBAL = '{\n\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n'

/** Caddy with the documented site, for an address whose certificate it makes by itself. */
async function startCaddy(t: TestContext, args: readonly string[] = []): Promise<Proxied> {
  const folder = scratchFolder(t)
  const port = await freePort()
  const url = `https://127.0.0.1:${port}`
  const upstream = await startUpstream(t, [...args, '--origin', url])
  const path = join(folder, 'Caddyfile')
  await writeFile(path, `${GLOBAL}${await deployFile('Caddyfile')}`)
  const env = {
    STOWAGE_SITE: url,
    STOWAGE_UPSTREAM: `127.0.0.1:${upstream.port}`,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
  }
  runToEnd('caddy', ['fmt', '--diff', deployPath('Caddyfile')])
  const complaints = await startProgram(t, ['caddy', 'run', '--config', path, '--adapter', 'caddyfile'], { port, env })
  const caPath = join(folder, 'caddy/pki/authorities/local/root.crt')
  for (const deadline = performance.now() + PATIENCE_MS; !(await hasCertificate(port, caPath)); await delay(50))
    assert.ok(performance.now() < deadline, 'Caddy has made no certificate')
  return { ...upstream, url, caPath, complaints }
}

/** Caddy listens before it has its authority, and has that before the certificate of the site. */
async function hasCertificate(port: number, caPath: string): Promise<boolean> {
  const ca = await readFile(caPath).catch(() => undefined)
  if (ca === undefined) return false
  const socket = connect({ host: '127.0.0.1', port, ca })
  try {
    await once(socket, 'secureConnect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

proxyCases('Caddy', startCaddy)
