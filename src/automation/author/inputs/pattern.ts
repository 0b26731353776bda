import { RE2JS } from 're2js'
import { PatternUnsupported, translatePattern } from './pattern-syntax.ts'

export interface CompiledPattern {
  /** Steps of the compiled program: a search takes at most this many for each character of the text. */
  readonly size: number
  /** Whether the text contains a match anywhere. */
  readonly test: (text: string) => boolean
}

/**
 * A pattern of JSON Schema as a test that takes time linear in the text, whatever the pattern: it runs in RE2, never in
 * the engine of the host, which some short patterns keep busy for years. Throws `PatternUnsupported`, with a message
 * that reads on from the name of the pattern.
 */
export function compilePattern(pattern: string): CompiledPattern {
  parseAsECMAScript(pattern)
  const translated = translatePattern(pattern)
  try {
    const compiled = RE2JS.compile(translated)
    return { size: compiled.programSize(), test: (text) => compiled.test(text) }
  } catch (error) {
    throw new PatternUnsupported(
      'cannot be run in linear time: it repeats something more than 1,000 times, or names an unknown property of characters',
      { cause: error },
    )
  }
}

/** Parsing alone is linear; nothing is run. */
function parseAsECMAScript(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'u')
  } catch (error) {
    throw new PatternUnsupported(
      'is not a regular expression of ECMAScript with the flag u, the syntax of JSON Schema (needless escapes such as \\- and \\_ are errors there)',
      { cause: error },
    )
  }
}

export { PatternUnsupported }
