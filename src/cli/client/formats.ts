import { Option } from 'commander'
import type { ObjectText } from '../../client/index.ts'

export type Format = 'lines' | 'ndjson' | 'json'

export function formatOption(byDefault: Format): Option {
  return new Option('--format <format>', 'lines (<id> TAB <json>), ndjson (one object a line) or json (one array)')
    .choices(['lines', 'ndjson', 'json'])
    .default(byDefault)
}

/** Writes objects in a format, as pieces of one text. */
export class FormatWriter {
  readonly #format: Format
  #hasObjects = false

  constructor(format: Format) {
    this.#format = format
  }

  batch(objects: readonly ObjectText[]): string {
    let text = ''
    for (const { id, json } of objects) {
      if (this.#format === 'lines') text += `${id}\t${json}\n`
      else if (this.#format === 'ndjson') text += `${json}\n`
      else text += `${this.#hasObjects ? ',\n' : '[\n'}${json}`
      this.#hasObjects = true
    }
    return text
  }

  end(): string {
    if (this.#format !== 'json') return ''
    return this.#hasObjects ? '\n]\n' : '[]\n'
  }
}
