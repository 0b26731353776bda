import type { AutomationFunction } from '../../../automation/author/function.ts'
import type { FunctionDefinition } from '../../domain/functions.ts'
import { CommandExecutor, type CommandOptions, resolveCommand } from './command.ts'
import type { FailureGuard } from './failure-guard.ts'
import type { CommandRunner } from './isolation/command-runner.ts'
import { InProcessExecutor } from './in-process.ts'

/** A function that runs in the server's own process: code that the host trusts as its own. */
export interface InProcessFunction
  extends Pick<FunctionDefinition, 'id' | 'release'>, Partial<Pick<FunctionDefinition, 'name' | 'description'>> {
  /** As `defineFunction` and `executeFunction` make it. */
  readonly function: AutomationFunction
}

/** A function that runs as a command, in its own process for each run. `readCommandSchema` returns its inputs. */
export interface CommandFunction extends Omit<FunctionDefinition, 'executor'>, CommandOptions {}

/** A function as it can be registered: in this process, as a command, or with an executor of the host's own. */
export type FunctionRegistration = FunctionDefinition | InProcessFunction | CommandFunction

/** The executors, one for each kind of function. */
export interface ExecutorParts {
  readonly guard: FailureGuard
  readonly runner: CommandRunner
}

/** Each kind of function with its executor. Throws `TypeError` and `RangeError`. */
export function withExecutor(registered: FunctionRegistration, { guard, runner }: ExecutorParts): FunctionDefinition {
  if ('executor' in registered) return registered
  if ('function' in registered) {
    const {
      id,
      release,
      function: automationFunction,
      name = automationFunction.name,
      description = automationFunction.description,
    } = registered
    return {
      id,
      release,
      name,
      description,
      inputs: { ...automationFunction.inputs.toJSONSchema() },
      executor: new InProcessExecutor(automationFunction, guard),
    }
  }
  const { id, release, name, description, inputs, ...command } = registered
  return {
    id,
    release,
    name,
    ...(description === undefined ? {} : { description }),
    inputs,
    executor: new CommandExecutor(resolveCommand(command), runner),
  }
}
