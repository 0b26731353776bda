import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from '../../bench/repository.ts'

/** A block of code on a page. */
export interface Block {
  /** From the repository on. */
  readonly page: string
  readonly line: number
  /** As its fence names it: empty if it names none, and `indented` for a block without a fence. */
  readonly language: string
  readonly text: string
}

const FENCE = /^```(\w*)/
/** Indented code stands after an empty line or a heading; what is indented in a list does not. */
const INDENTED = /^ {4}\S/

/** README and the pages below `docs`. */
export function pages(): string[] {
  const names = readdirSync(join(REPOSITORY, 'docs')).filter((name) => name.endsWith('.md'))
  return ['README.md', ...names.map((name) => `docs/${name}`)]
}

/** All blocks of code of a page, in order. */
export function blocksOf(page: string): Block[] {
  const lines = readFileSync(join(REPOSITORY, page), 'utf8').split('\n')
  const blocks: Block[] = []
  let inList = false
  for (let at = 0; at < lines.length; at++) {
    const [, language] = FENCE.exec(lines[at]) ?? []
    if (language !== undefined) {
      const end = lines.indexOf('```', at + 1)
      blocks.push({ page, line: at + 1, language, text: lines.slice(at + 1, end).join('\n') })
      at = end
    } else if (INDENTED.test(lines[at]) && !inList && lines[at - 1] === '') {
      let end = at
      while (INDENTED.test(lines[end]) || (lines[end] === '' && INDENTED.test(lines[end + 1] ?? ''))) end++
      const text = lines.slice(at, end).map((line) => line.slice(4))
      blocks.push({ page, line: at + 1, language: 'indented', text: text.join('\n') })
      at = end - 1
    } else if (/^(?:- |\d+\. )/.test(lines[at])) inList = true
    else if (/^\S/.test(lines[at])) inList = false
  }
  return blocks
}
