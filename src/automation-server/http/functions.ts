import { InputsError } from '../../automation/author/inputs/errors.ts'
import type { Resource } from '../../http/router.ts'
import { INPUTS_TO_VALIDATE } from '../schemas/shapes/functions.ts'
import type { HttpDeps } from './deps.ts'
import { handlersOf, resource } from './handlers.ts'
import { readJson, readQuery } from './json.ts'

const FUNCTIONS = '/api/v1/projects/:projectId/functions'

/** The functions that can run, and the validation of inputs. */
export function functionResources<H>({ domain, context, limits }: HttpDeps<H>): readonly Resource<H>[] {
  const { functions } = domain.options
  const { reading } = handlersOf(context)
  return [
    resource(FUNCTIONS, { GET: reading((exchange) => functions.page(readQuery(exchange))) }),
    resource(`${FUNCTIONS}/:functionId`, { GET: reading(({ params }) => functions.get(params.functionId).view) }),
    resource(`${FUNCTIONS}/:functionId/validate`, {
      POST: reading(async (exchange) => {
        const { parse } = functions.get(exchange.params.functionId)
        const { inputs } = await readJson(exchange, limits.bodyBytesMax, INPUTS_TO_VALIDATE)
        return validity(parse, inputs)
      }),
    }),
  ]
}

function validity(
  parse: (json: unknown) => unknown,
  inputs: unknown,
): { readonly valid: boolean; readonly issues: InputsError['issues'] } {
  try {
    parse(inputs)
    return { valid: true, issues: [] }
  } catch (error) {
    if (error instanceof InputsError) return { valid: false, issues: error.issues }
    throw error
  }
}
