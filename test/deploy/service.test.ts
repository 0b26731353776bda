import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { freePort } from '../../bench/free-port.ts'
import { REPOSITORY } from '../../bench/repository.ts'
import { newDataFolder, startServer, stowage } from '../cli/command.ts'
import { deployFile, runToEnd, scratchFolder } from './support.ts'

/** What systemd 252 counts for the hardening of the unit; 10 would be none. */
const EXPOSURE_MAX = 4.2

void test('systemd accepts the unit and rates its sandbox well', async (t) => {
  const unit = join(scratchFolder(t), 'stowage.service')
  const program = { '/opt/stowage/node_modules/.bin/stowage': process.execPath }
  await writeFile(unit, await deployFile('stowage.service', program))
  assert.equal(runToEnd('systemd-analyze', ['verify', unit]), '')
  const [, exposure] = /exposure level for .*: ([\d.]+)/.exec(
    runToEnd('systemd-analyze', ['security', '--offline=true', unit]),
  ) as RegExpExecArray
  assert.ok(Number(exposure) <= EXPOSURE_MAX, `its exposure is ${exposure}`)
  await writeFile(unit, await deployFile('stowage.service', { ...program, 'KillMode=mixed': 'KillMode=soft' }))
  assert.throws(() => assert.equal(runToEnd('systemd-analyze', ['verify', unit]), ''), /kill mode/)
})

void test('the command line of the unit starts a server', async (t) => {
  const [, command] = /^ExecStart=(.*)$/m.exec(await deployFile('stowage.service')) as RegExpExecArray
  const started = await startDocumented(t, command.split(' ').slice(1), '/var/lib/stowage')
  assert.match(started.line, /^stowage serves .* on http:\/\/127\.0\.0\.1:\d+, metrics on /)
})

void test('the server of the unit counts requests by the client that its proxy names', async (t) => {
  const [, command] = /^ExecStart=(.*)$/m.exec(await deployFile('stowage.service')) as RegExpExecArray
  const args = [...command.split(' ').slice(1), '--requests-per-address-max', '1']
  const { port, folder } = await startDocumented(t, args, '/var/lib/stowage')
  const token = (await stowage(['token', '--data', folder, '--project', 'p', '--access', 'write'])).stdout.trim()
  const slow = connect({ port, host: '127.0.0.1' })
  t.after(() => slow.destroy())
  slow.write(
    `POST /objects/p HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nX-Forwarded-For: 203.0.113.9\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n`,
  )
  await once(slow, 'data')
  const statusFor = async (client: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${port}/objects/p/a`, { headers: { 'X-Forwarded-For': client } })).status
  assert.deepEqual([await statusFor('203.0.113.9'), await statusFor('198.51.100.7')], [503, 401])
})

void test('the command and the health check of the container file work', async (t) => {
  const file = await deployFile('Containerfile')
  const [program, ...args] = JSON.parse(/^CMD (\[.*\])$/m.exec(file)?.[1] ?? '[]') as string[]
  assert.equal(program, 'stowage')
  const local = args.map((arg) => (arg === '0.0.0.0' ? '127.0.0.1' : arg))
  const { port } = await startDocumented(t, local, '/data')
  const [node, ...health] = JSON.parse(/^HEALTHCHECK .* CMD (\[.*\])$/m.exec(file)?.[1] ?? '[]') as string[]
  assert.equal(node, 'node')
  const codeAt = async (address: number): Promise<unknown> => {
    const child = spawn(
      process.execPath,
      health.map((arg) => arg.replace('8642', String(address))),
      { stdio: 'ignore' },
    )
    return (await once(child, 'exit'))[0] as unknown
  }
  assert.equal(await codeAt(port), 0)
  assert.equal(await codeAt(await freePort()), 1)
})

/** `stowage serve` with documented arguments, in a folder of the test instead of `data`, on free ports. */
async function startDocumented(
  t: TestContext,
  args: readonly string[],
  data: string,
): Promise<{ readonly line: string; readonly port: number; readonly folder: string }> {
  assert.equal(args[0], 'serve')
  assert.ok(args.includes(data))
  const folder = newDataFolder(t)
  const local = args.slice(1).map((arg) => (arg === data ? folder : arg))
  const metricsAt = local.indexOf('--metrics')
  assert.notEqual(metricsAt, -1)
  local.splice(metricsAt + 1, 0, '0')
  const { line } = await startServer(t, local)
  return { line, port: Number(/:(\d+)/.exec(line)?.[1]), folder }
}

void test('the container file installs the package as documented', async (t) => {
  const [, run] = /^RUN (npm install .*) && rm .*$/m.exec(await deployFile('Containerfile')) as RegExpExecArray
  assert.match(run, /^npm install --omit=dev --no-audit --no-fund \.\/stowage-\*\.tgz prom-client@15$/)
  const folder = scratchFolder(t)
  runToEnd('npm', ['pack', '--silent', '--pack-destination', folder], REPOSITORY)
  runToEnd('sh', ['-c', `${run} --silent`], folder)
  assert.match(runToEnd(join(folder, 'node_modules/.bin/stowage'), ['serve', '--help']), /--metrics/)
})
