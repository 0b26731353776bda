import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Answer } from '../../http/exchange.ts'

/** Names that change with their contents, so that browsers may keep the files forever. */
export interface AssetNames {
  readonly style: string
  readonly script: string
}

const HASH_CHARACTERS = 16
const TYPES: Readonly<Record<string, string>> = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8' }

/** The stylesheet and the script, which lie beside this file. */
export class Assets {
  readonly names: AssetNames
  readonly #files: ReadonlyMap<string, Buffer>

  constructor() {
    const style = loaded('style', 'css')
    const script = loaded('live', 'js')
    this.names = { style: style[0], script: script[0] }
    this.#files = new Map([style, script])
  }

  /** `undefined` if the file does not exist. */
  answer(name: string): Answer | undefined {
    const body = this.#files.get(name)
    if (body === undefined) return undefined
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
    return {
      status: 200,
      headers: {
        'Content-Type': type,
        'Cache-Control': 'public, max-age=31536000, immutable',
        'Cross-Origin-Resource-Policy': 'same-origin',
      },
      body,
    }
  }
}

function loaded(name: string, ending: string): [string, Buffer] {
  const bytes = readFileSync(new URL(`../assets/${name}.${ending}`, import.meta.url))
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, HASH_CHARACTERS)
  return [`${name}.${hash}.${ending}`, bytes]
}
