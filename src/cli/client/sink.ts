import { once } from 'node:events'
import { type FileHandle, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StowageError } from '../../errors.ts'
import { quotedPath } from '../../object/id.ts'
import { syncFolder } from '../../data-folder/durable-files.ts'

/** As a file's name. */
export const STDOUT = '-'

/** The destination of a text: standard output as it comes, or a file that appears once it is complete. */
export interface Sink {
  write(text: string): Promise<void>
  /** All of it is written. */
  finish(): Promise<void>
  /** Leaves nothing behind; after `finish`, only its result. */
  close(): Promise<void>
}

export interface FileSink extends Sink {
  /** Whether it is a file on a disk, beside which others can be created. */
  readonly isRegular: boolean
}

/** The signal ends the wait for a reader that has stopped reading. */
export async function writeToStdout(bytes: string | Uint8Array, signal: AbortSignal): Promise<void> {
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain', { signal })
}

export function stdoutSink(signal: AbortSignal): Sink {
  return {
    write: (text) => writeToStdout(text, signal),
    finish: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

/**
 * Writes beside the file and renames in the end, so that the file never exists in part. An existing file is replaced;
 * if the name is a link, its target is. A device or a pipe is written directly. Throws for a folder, and if the folder
 * does not exist.
 */
export async function fileSink(path: string): Promise<FileSink> {
  const info = await stat(path).catch(() => undefined)
  if (info?.isDirectory() === true)
    throw new StowageError('invalid_request', `${quotedPath(path)} is a folder; name the file to write`)
  if (info?.isFile() === false) return { ...plainSink(await open(path, 'w')), isRegular: false }
  const target = info === undefined ? path : await realpath(path)
  return {
    ...renamingSink(await openNew(`${target}.unfinished`, path), `${target}.unfinished`, target),
    isRegular: true,
  }
}

async function openNew(temporary: string, path: string): Promise<FileHandle> {
  try {
    return await open(temporary, 'w')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new StowageError('invalid_request', `there is no folder ${quotedPath(dirname(path))} for the file to write`)
  }
}

function plainSink(handle: FileHandle): Sink {
  return { write: (text) => handle.writeFile(text), finish: () => Promise.resolve(), close: () => handle.close() }
}

function renamingSink(handle: FileHandle, temporary: string, path: string): Sink {
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
