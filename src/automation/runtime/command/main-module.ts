import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'

/**
 * Whether node was started with the file that calls `called`. `import.meta.main` would tell, but Node 20 lacks it, and
 * the caller would have to pass it.
 */
export function isCalledByMainModule(called: (...parameters: never[]) => unknown): boolean {
  const [, started] = process.argv
  if (started === undefined || !isMainThread) return false
  const caller = fileThatCalls(called)
  return caller !== undefined && resolved(caller) === resolved(started)
}

function fileThatCalls(called: (...parameters: never[]) => unknown): string | undefined {
  const original = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
  try {
    const trace: { stack?: unknown } = {}
    Error.prepareStackTrace = (_, sites) => sites
    Error.captureStackTrace(trace, called)
    const [site] = trace.stack as readonly NodeJS.CallSite[]
    const name = site?.getFileName() ?? undefined
    return name?.startsWith('file:') === true ? fileURLToPath(new URL(name)) : name
  } finally {
    if (original === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace')
    else Object.defineProperty(Error, 'prepareStackTrace', original)
  }
}

/** As node finds the file: links are followed, and the ending may be missing. */
function resolved(path: string): string {
  try {
    return createRequire(import.meta.url).resolve(path)
  } catch {
    return path
  }
}
