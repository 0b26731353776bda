import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { test } from 'node:test'
import { newDataFolder, startServer } from './command.ts'

/** The niceness of each thread of a process: field 19 of proc(5), counted behind the name, which may hold spaces. */
function nicenessOfThreads(pid: number): Map<number, number> {
  const folder = `/proc/${pid}/task`
  return new Map(
    readdirSync(folder).map((id) => {
      const stat = readFileSync(`${folder}/${id}/stat`, 'utf8')
      return [Number(id), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])]
    }),
  )
}

test(
  'the main thread of a server comes before its other threads',
  { skip: process.platform !== 'linux' && 'only Linux has a niceness for each thread' },
  async (t) => {
    const { child } = await startServer(t, ['--data', newDataFolder(t), '--json'])
    const pid = child.pid as number
    const own = nicenessOfThreads(process.pid).get(process.pid) as number
    const threads = nicenessOfThreads(pid)
    assert.equal(threads.get(pid), own)
    threads.delete(pid)
    assert.ok(threads.size > 0)
    assert.deepEqual(new Set(threads.values()), new Set([Math.min(19, own + 10)]))
  },
)
