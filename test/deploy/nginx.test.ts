import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { writeModel } from '../cli/model-file.ts'
import { stowage } from '../cli/command.ts'
import { proxyCases, signIn } from './proxy-cases.ts'
import { freePort } from '../../bench/free-port.ts'
import { ask, deployFile, type Proxied, runToEnd, scratchFolder, startProgram, startUpstream } from './support.ts'

/**
 * nginx with the documented site, over a certificate of the test's own. `change` is for sites that are not as
 * documented.
 */
async function startNginx(
  t: TestContext,
  args: readonly string[] = [],
  change: (site: string) => string = (site) => site,
): Promise<Proxied & { readonly plainUrl: string }> {
  const folder = scratchFolder(t)
  await chmod(folder, 0o755)
  const [tlsPort, plainPort] = [await freePort(), await freePort()]
  const { keyPath, caPath } = certificate(folder)
  const upstream = await startUpstream(t, [...args, '--origin', `https://127.0.0.1:${tlsPort}`])
  const site = await deployFile('nginx.conf', {
    'server 127.0.0.1:8642;': `server 127.0.0.1:${upstream.port};`,
    'listen 80;': `listen 127.0.0.1:${plainPort};`,
    'listen [::]:80;': '',
    'listen 443 ssl http2;': `listen 127.0.0.1:${tlsPort} ssl http2;`,
    'listen [::]:443 ssl http2;': '',
    '/etc/letsencrypt/live/models.example/fullchain.pem': caPath,
    '/etc/letsencrypt/live/models.example/privkey.pem': keyPath,
  })
  await writeFile(join(folder, 'site.conf'), change(site))
  await writeFile(join(folder, 'nginx.conf'), SETTINGS)
  const command = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')] as const
  runToEnd(command[0], [...command.slice(1), '-t'])
  await startProgram(t, [...command], { port: tlsPort })
  const complaints = (): string => readFileSync(join(folder, 'error.log'), 'utf8')
  const [url, plainUrl] = [`https://127.0.0.1:${tlsPort}`, `http://127.0.0.1:${plainPort}`]
  return { ...upstream, url, plainUrl, caPath, complaints }
}

/** What Debian's nginx has around a site. */
const SETTINGS = `daemon off; worker_processes 1; pid nginx.pid; error_log error.log;
events { worker_connections 768; }
http {
  sendfile on; tcp_nopush on; access_log off; gzip on; default_type application/octet-stream;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  include site.conf;
}
`

function certificate(folder: string): { readonly keyPath: string; readonly caPath: string } {
  const [keyPath, caPath] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const names = ['-subj', '/CN=models.example', '-addext', 'subjectAltName=IP:127.0.0.1,DNS:models.example']
  runToEnd('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    ...names,
    '-keyout',
    keyPath,
    '-out',
    caPath,
  ])
  return { keyPath, caPath }
}

proxyCases('nginx', startNginx)

void test('nginx redirects plain http to https', async (t) => {
  const proxied = await startNginx(t)
  const { status, headers } = await ask(proxied, `${proxied.plainUrl}/web?a=b`, { headers: { Host: 'models.example' } })
  assert.deepEqual([status, headers.location], [308, 'https://models.example/web?a=b'])
})

void test('nginx: pages need --origin or the Host header of the browser', async (t) => {
  const changesHost = (site: string): string => site.replace('proxy_set_header Host $http_host;', '')
  const proxied = await startNginx(t, [], changesHost)
  assert.equal((await signIn(proxied, new URL(proxied.url).origin)).status, 303, '--origin says it')
  assert.equal((await signIn(proxied, 'http://stowage')).status, 403)
})

void test('nginx: proxy_cache breaks resumed downloads, as documented', async (t) => {
  const proxied = await startNginx(
    t,
    [],
    (site) =>
      `proxy_cache_path cache keys_zone=objects:1m;\n${site.replace('proxy_cache off;', 'proxy_cache objects; proxy_buffering on;').replace('proxy_buffering off;', '')}`,
  )
  const model = join(scratchFolder(t), 'model.txt')
  const root = await writeModel(model, { objects: 500 })
  const env = { STOWAGE_TOKEN: proxied.token, NODE_EXTRA_CA_CERTS: proxied.caPath }
  const { code, stderr } = await stowage(['upload', model, '--url', proxied.url, '--project', 'demo', '--quiet'], env)
  assert.equal(code, 0, stderr)
  const { status } = await ask(proxied, `${proxied.url}/objects/demo/${root}`, { headers: { Range: 'bytes=100-' } })
  assert.equal(status, 200)
})
