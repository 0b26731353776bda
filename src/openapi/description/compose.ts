import { shareResponses } from './shared-responses.ts'
import type { Components, OpenApiDocument, Paths, Tag } from './types.ts'

/** One area of the interface: its additions to the document. */
export interface ApiArea {
  readonly tags: readonly Tag[]
  readonly paths: Paths
  readonly components: Components
}

type Section = keyof Components

/** One document of several areas. Throws `TypeError` if two areas use one name for two things. */
export function composeDocument(
  frame: Pick<OpenApiDocument, 'openapi' | 'info' | 'servers' | 'security'>,
  areas: readonly ApiArea[],
): OpenApiDocument {
  const paths = merged(
    areas.map((area) => area.paths),
    'path',
  )
  const components = {
    schemas: section(areas, 'schemas'),
    parameters: section(areas, 'parameters'),
    headers: section(areas, 'headers'),
    responses: section(areas, 'responses'),
    securitySchemes: section(areas, 'securitySchemes'),
  }
  return { ...frame, tags: areas.flatMap(({ tags }) => tags), ...shareResponses(paths, components) }
}

function section<S extends Section>(areas: readonly ApiArea[], name: S): NonNullable<Components[S]> {
  return merged(
    areas.map(({ components }) => (components[name] ?? {}) as Readonly<Record<string, unknown>>),
    name,
  ) as NonNullable<Components[S]>
}

/** Areas share parts as the same value, so the same name twice with the same value is no conflict. */
function merged<T>(parts: readonly Readonly<Record<string, T>>[], what: string): Readonly<Record<string, T>> {
  const all = new Map<string, T>()
  for (const part of parts) {
    for (const [name, value] of Object.entries(part)) {
      if (all.has(name) && all.get(name) !== value)
        throw new TypeError(`two areas of the description define the ${what} "${name}" differently`)
      all.set(name, value)
    }
  }
  return Object.fromEntries(all)
}
