/** The little XML of S3: answers are flat lists of elements with text, and what is sent consists of safe names. */

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The content of the first element with this name; `undefined` if there is none. */
export function elementOf(xml: string, name: string): string | undefined {
  const [first] = elementsOf(xml, name)
  return first
}

/** The contents of all elements with this name. Elements of one name never contain each other in S3. */
export function elementsOf(xml: string, name: string): string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?(?:/>|>([\\s\\S]*?)</${name}>)`, 'g')
  return [...xml.matchAll(pattern)].map(([, content]) => content ?? '')
}

/** The text of the first element with this name, which holds no other element. */
export function textOf(xml: string, name: string): string | undefined {
  const content = elementOf(xml, name)
  return content === undefined ? undefined : unescaped(content)
}

export function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.codePointAt(0)};`)
}

function unescaped(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|([a-z]+));/gi, (all, decimal?: string, hex?: string, name?: string) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
    return ENTITIES[name ?? ''] ?? all
  })
}
