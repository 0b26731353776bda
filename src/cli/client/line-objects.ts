import { StowageError } from '../../errors.ts'
import { quoted } from '../../object/id.ts'
import type { FoundObject, ObjectReader } from './json-objects.ts'

const LINE_CHARACTERS_MAX = 256 * 1_048_576

/**
 * The objects of lines `<id> TAB <json>`, as downloads write them. The last line may lack its end, and empty lines do
 * not count.
 */
export class LineObjects implements ObjectReader {
  #rest: string[] = []
  #restCharacters = 0
  #lines = 0

  push(text: string): readonly FoundObject[] {
    const end = text.lastIndexOf('\n') + 1
    if (end === 0) {
      this.#keep(text)
      return []
    }
    const whole = this.#taken() + text.slice(0, end)
    this.#keep(text.slice(end))
    return this.#objects(whole)
  }

  end(): readonly FoundObject[] {
    return this.#objects(this.#taken())
  }

  #keep(text: string): void {
    this.#rest.push(text)
    this.#restCharacters += text.length
    if (this.#restCharacters > LINE_CHARACTERS_MAX)
      throw this.#fault(`it has more than ${LINE_CHARACTERS_MAX} characters`)
  }

  #taken(): string {
    const text = this.#rest.join('')
    this.#rest = []
    this.#restCharacters = 0
    return text
  }

  #objects(text: string): readonly FoundObject[] {
    const objects: FoundObject[] = []
    for (let start = 0; start < text.length;) {
      const end = text.indexOf('\n', start)
      const line = text.slice(start, end === -1 ? text.length : end)
      start += line.length + 1
      if (line.trim() !== '') objects.push(this.#object(copied(line)))
      this.#lines += 1
    }
    return objects
  }

  #object(line: string): FoundObject {
    const tab = line.indexOf('\t')
    if (tab === -1) throw this.#fault(`it is not an id, a tab and an object: ${quoted(line)}`)
    const id = line.slice(0, tab)
    const json = line.slice(tab + 1).trimEnd()
    if (!startsWithId(json, id) && this.#parsedId(json) !== id)
      throw this.#fault(`the object after the tab does not have the id ${quoted(id)}`)
    return { id, json }
  }

  #parsedId(json: string): unknown {
    try {
      return (JSON.parse(json) as { readonly id?: unknown } | null)?.id
    } catch (error) {
      throw this.#fault(
        `the text after the tab is not JSON: ${error instanceof Error ? error.message : 'it cannot be parsed'}`,
      )
    }
  }

  #fault(problem: string): StowageError {
    return new StowageError('invalid_json', `line ${this.#lines + 1} of the file cannot be read: ${problem}`)
  }
}

/** True of nearly all lines, which saves parsing them; the server checks whether the rest is JSON. */
function startsWithId(json: string, id: string): boolean {
  return json.startsWith(`{"id":${JSON.stringify(id)}`) && json.endsWith('}')
}

/**
 * A part of a text keeps the whole text in memory. Where only a few of a file's objects are sent, those that wait to be
 * would keep most of the file.
 */
function copied(text: string): string {
  return Buffer.from(text).toString()
}
