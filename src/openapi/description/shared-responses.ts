import type { Components, Operation, PathItem, Paths, Reference, Response, Responses } from './types.ts'

/** The first error code that the description of a response names. */
const FIRST_CODE = /^`(\w+)`/

/**
 * Moves each response that several operations share to the components, so that the document contains it once. Names are
 * made of the first error code, or of the status: `NotFound`, `NotFound2`, `Status304`.
 */
export function shareResponses(paths: Paths, components: Components): { paths: Paths; components: Components } {
  const uses = new Map<string, number>()
  for (const { text } of responsesOf(paths)) uses.set(text, (uses.get(text) ?? 0) + 1)
  const responses: Record<string, Response> = { ...components.responses }
  const names = new Map<string, string>()
  for (const { status, response, text } of responsesOf(paths)) {
    if ((uses.get(text) ?? 0) < 2 || names.has(text)) continue
    const name = freeName(nameOf(status, response), responses)
    names.set(text, name)
    responses[name] = response
  }
  return { paths: withReferences(paths, names), components: { ...components, responses } }
}

function* responsesOf(paths: Paths): Generator<{ status: string; response: Response; text: string }> {
  for (const item of Object.values(paths)) {
    for (const [, operation] of operationsOf(item)) {
      for (const [status, response] of Object.entries(operation.responses))
        if (!('$ref' in response)) yield { status, response, text: textOf(status, response) }
    }
  }
}

function withReferences(paths: Paths, names: ReadonlyMap<string, string>): Paths {
  const referring = ([status, response]: [string, Response | Reference]): [string, Response | Reference] => {
    const name = '$ref' in response ? undefined : names.get(textOf(status, response))
    return [status, name === undefined ? response : { $ref: `#/components/responses/${name}` }]
  }
  const shared = (responses: Responses): Responses => Object.fromEntries(Object.entries(responses).map(referring))
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item).map(([member, value]) => [
          member,
          isOperation(value) ? { ...value, responses: shared(value.responses) } : value,
        ]),
      ) as PathItem,
    ]),
  )
}

function operationsOf(item: PathItem): [string, Operation][] {
  return Object.entries(item).filter((entry): entry is [string, Operation] => isOperation(entry[1]))
}

function isOperation(value: PathItem[keyof PathItem]): value is Operation {
  return value !== undefined && 'responses' in value
}

function textOf(status: string, response: Response): string {
  return `${status} ${JSON.stringify(response)}`
}

function nameOf(status: string, { description }: Response): string {
  const code = FIRST_CODE.exec(description)?.[1]
  return code === undefined
    ? `Status${status}`
    : code.replaceAll(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase())
}

function freeName(name: string, taken: Readonly<Record<string, Response>>): string {
  let free = name
  for (let count = 2; free in taken; count++) free = `${name}${count}`
  return free
}
