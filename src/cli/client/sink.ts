import { once } from 'node:events'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncFolder } from '../../storage/durable-files.ts'

/** Where a text goes: to standard output as it comes, or to a file that is there once it is whole. */
export interface Sink {
  write(text: string): Promise<void>
  /** All of it is written. */
  finish(): Promise<void>
  /** Leaves nothing behind, after `finish` too only what that made. */
  close(): Promise<void>
}

export function stdoutSink(): Sink {
  return {
    write: async (text) => {
      if (!process.stdout.write(text)) await once(process.stdout, 'drain')
    },
    finish: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

/** Writes beside the file and renames in the end, so that the file is never there in part. A file of that name gives way. */
export async function fileSink(path: string): Promise<Sink> {
  const temporary = `${path}.unfinished`
  const handle = await open(temporary, 'w')
  let isOpen = true
  return {
    write: (text) => handle.writeFile(text),
    finish: async () => {
      await handle.sync()
      await handle.close()
      isOpen = false
      await rename(temporary, path)
      await syncFolder(dirname(path))
    },
    close: async () => {
      if (!isOpen) return
      await handle.close()
      await rm(temporary, { force: true })
    },
  }
}
