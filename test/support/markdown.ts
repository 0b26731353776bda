import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { REPOSITORY } from '../../bench/repository.ts'

/** The code blocks of one language on a page of the documents, or in one section of it, in order. */
export async function codeBlocks(page: string, language: string, section?: string): Promise<readonly string[]> {
  const whole = await readFile(join(REPOSITORY, 'docs', page), 'utf8')
  const text =
    section === undefined ? whole : (whole.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? '')
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)]
    .filter((block) => block[1] === language)
    .map((block) => block[2])
}
