import { InputsError } from '../../automation/author/inputs/errors.ts'
import type { Resource } from '../../http/router.ts'
import { INPUTS_TO_VALIDATE } from '../schemas/shapes/functions.ts'
import type { HttpDeps } from './deps.ts'
import { checkParams, jsonAnswer, readJson, readQuery } from './json.ts'

const FUNCTIONS = '/api/v1/projects/:projectId/functions'

/** The functions that can run, and the validation of inputs. */
export function functionResources<H>({ domain, context: { guard }, limits }: HttpDeps<H>): readonly Resource<H>[] {
  const { functions } = domain.options
  return [
    {
      path: FUNCTIONS,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, functions.page(readQuery(exchange)))
        },
      },
    },
    {
      path: `${FUNCTIONS}/:functionId`,
      check: checkParams,
      operations: {
        GET: async (exchange) => {
          await guard(exchange, 'read')
          return jsonAnswer(200, functions.get(exchange.params.functionId).view)
        },
      },
    },
    {
      path: `${FUNCTIONS}/:functionId/validate`,
      check: checkParams,
      operations: {
        POST: async (exchange) => {
          await guard(exchange, 'read')
          const { parse } = functions.get(exchange.params.functionId)
          const { inputs } = await readJson(exchange, limits.bodyBytesMax, INPUTS_TO_VALIDATE)
          return jsonAnswer(200, validity(parse, inputs))
        },
      },
    },
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
