import { readFileSync, writeFileSync } from 'node:fs'

/* `node extract.mjs PAGE.md` writes the files that the page's code blocks make: blocks with one title are one file, in their order. */
const files = new Map()
for (const [, title, code] of readFileSync(process.argv[2], 'utf8').matchAll(/^```js title=(\S+)\n([^]*?)^```$/gm))
  files.set(title, (files.get(title) ?? '') + code)
if (files.size === 0) throw new Error(`${process.argv[2]} has no code blocks with a title`)
for (const [title, code] of files) writeFileSync(title, code)
