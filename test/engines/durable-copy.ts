import { execFileSync } from 'node:child_process'
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/*
 * SIGKILL takes the processes of an engine, but what they wrote is safe with the kernel. Here a loss of power is played: of everything that was
 * written only what was synced is left. `power-loss.ts` of the crash tests follows files that grow; an engine also writes into the middle of files,
 * so here each sync copies the whole file.
 */

/** The durable state of one folder, whose processes are watched by the library `shim` (durable-copy.c). */
export class DurableCopy {
  readonly #root: string
  readonly #copy: string
  readonly #lock: string
  readonly #shim: string

  /** `scratch` lies on the file system of `root`, and the processes may write into it. */
  constructor(root: string, scratch: string, shim: string) {
    this.#root = root
    this.#copy = join(scratch, 'durable')
    this.#lock = join(scratch, 'durable-lock')
    this.#shim = shim
  }

  /** Takes what is in the folder now for durable. The answer is the environment of the processes that are to be watched. */
  arm(): NodeJS.ProcessEnv {
    rmSync(this.#copy, { recursive: true, force: true })
    // With owners, which `cpSync` does not keep.
    execFileSync('cp', ['-a', this.#root, this.#copy])
    return { LD_PRELOAD: this.#shim, DURABLE_ROOT: this.#root, DURABLE_COPY: this.#copy, DURABLE_LOCK: this.#lock }
  }

  /** After the processes have ended: leaves in the folder what is found there when the power comes back. */
  strike(): void {
    rmSync(this.#root, { recursive: true })
    renameSync(this.#copy, this.#root)
  }
}
