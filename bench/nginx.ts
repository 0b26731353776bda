import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from './free-port.ts'

export interface FileServer {
  readonly url: string
  /** The folder that it serves. */
  readonly folder: string
  stop(): Promise<void>
}

const START_TIMEOUT_MS = 5_000

/** nginx with Debian's settings for static files, in a folder of its own; `undefined` if it is not installed. */
export async function startNginx(parent: string): Promise<FileServer | undefined> {
  const program = ['nginx', '/usr/sbin/nginx'].find((name) => spawnSync(name, ['-v']).status === 0)
  if (program === undefined) return undefined
  const prefix = join(parent, 'nginx')
  const folder = join(prefix, 'files')
  await mkdir(folder, { recursive: true })
  for (const path of [parent, prefix, folder]) await chmod(path, 0o755)
  const port = await freePort()
  await writeFile(join(prefix, 'nginx.conf'), settings(folder, port))
  const child = spawn(program, ['-p', prefix, '-c', join(prefix, 'nginx.conf'), '-e', join(prefix, 'error.log')], {
    stdio: 'inherit',
  })
  process.once('exit', () => child.kill())
  try {
    await untilListening(port)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit')
    child.kill('SIGQUIT')
    await ended
  }
  return { url: `http://127.0.0.1:${port}`, folder, stop }
}

function settings(folder: string, port: number): string {
  return `daemon off; worker_processes auto; pid nginx.pid; error_log error.log;
events { worker_connections 768; }
http {
  sendfile on; tcp_nopush on; access_log off; default_type application/octet-stream;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server { listen 127.0.0.1:${port}; root ${folder}; }
}
`
}

async function untilListening(port: number): Promise<void> {
  for (const deadline = performance.now() + START_TIMEOUT_MS; ;) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch (cause) {
      if (performance.now() > deadline) throw new Error('nginx did not listen in time', { cause })
      await delay(50)
    } finally {
      socket.destroy()
    }
  }
}
