import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY } from '../../bench/repository.ts'
import { allCommands, commandTree } from '../../src/cli/completion/command-tree.ts'
import { createProgram } from '../../src/cli/program.ts'
import { blocksOf, pages } from './blocks.ts'

/* The pages name no command and no option that the command does not have. */

/** The command with what follows it, up to the end of the shell's command. */
const INVOCATION =
  /^(?:\$ )?(?:sudo (?:-u \w+ )?|podman exec \w+ )?(?:npx )?(?:\S*\/bin\/)?stowage ([a-z-][^\n|;&>)#]*)/gm
const INLINE = /`(?:npx )?stowage ([a-z][^`]*)`/g

const tree = commandTree(await createProgram())
const commands = new Map(allCommands(tree).map((node) => [node.path, node]))

/** Why the words cannot follow `stowage`; `undefined` if they can. */
function fault(words: readonly string[]): string | undefined {
  let node = tree
  let at = 0
  for (let next = commands.get(`${node.path} ${words[at]}`); next !== undefined;) {
    node = next
    at += 1
    next = commands.get(`${node.path} ${words[at]}`)
  }
  if (at === 0 && !words[0].startsWith('-')) return `there is no command "${words[0]}"`
  const known = new Set([
    '--help',
    ...tree.options.flatMap(({ flags }) => flags),
    ...node.options.flatMap(({ flags }) => flags),
  ])
  const flags = words.slice(at).filter((word) => /^--?[a-z]/.test(word))
  const unknown = flags.map((flag) => flag.split('=')[0]).find((flag) => !known.has(flag))
  return unknown === undefined ? undefined : `"${node.path}" has no option ${unknown}`
}

/** The lines that a reader types: with prompts, what the others show is output. */
function commandsOf(text: string): string {
  const whole = text.replaceAll(/\\\n/g, ' ')
  const typed = whole.split('\n').filter((line) => line.startsWith('$ '))
  return typed.length === 0 ? whole : typed.join('\n')
}

function wordsOf(invocation: string): readonly string[] {
  return invocation
    .replaceAll(/'[^']*'|"[^"]*"/g, 'quoted')
    .trim()
    .split(/\s+/)
}

for (const page of pages())
  test(`${page}: commands and options exist`, () => {
    const blocks = blocksOf(page).filter(({ language }) => ['', 'sh', 'bash', 'indented'].includes(language))
    const inBlocks = blocks.flatMap(({ text }) => [...commandsOf(text).matchAll(INVOCATION)])
    const inline = [...readFileSync(join(REPOSITORY, page), 'utf8').matchAll(INLINE)]
    for (const [whole, invocation] of [...inBlocks, ...inline]) {
      const reason = fault(wordsOf(invocation))
      assert.equal(reason, undefined, `${whole.trim()}: ${reason}`)
    }
  })

test('an unknown command and an unknown option are detected', () => {
  assert.equal(fault(['serve', '--data', './data']), undefined)
  assert.equal(fault(['serv', '--data', './data']), 'there is no command "serv"')
  assert.equal(fault(['model', 'create', '--nam', 'x']), '"stowage model create" has no option --nam')
})
