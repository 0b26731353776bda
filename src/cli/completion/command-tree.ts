import type { Argument, Command, Option } from 'commander'
import { defaultCommandOf } from '../common/default-command.ts'

/** The values that a shell can offer. */
export type Values =
  | { readonly kind: 'none' }
  | { readonly kind: 'files' }
  | { readonly kind: 'folders' }
  | { readonly kind: 'words'; readonly words: readonly string[] }

/** An option as a shell completes it. */
export interface OptionNode {
  /** Its spellings, such as `-o` and `--output`. */
  readonly flags: readonly string[]
  readonly description: string
  /** `undefined` for an option that takes no value, or need not. */
  readonly values: Values | undefined
  /** Whether it may be given more than once. */
  readonly isRepeatable: boolean
}

/** A positional argument as a shell completes it. */
export interface ArgumentNode {
  readonly name: string
  readonly values: Values
  readonly isVariadic: boolean
}

/** A command with everything that may follow its name. */
export interface CommandNode {
  readonly name: string
  /** The names from the program's on, separated by spaces. */
  readonly path: string
  readonly description: string
  readonly commands: readonly CommandNode[]
  readonly options: readonly OptionNode[]
  readonly arguments: readonly ArgumentNode[]
}

/** The help command, which commander makes. */
const HELP = 'help'

/**
 * Reads commands, options and arguments from commander's own tree, so that completion cannot fall behind the command
 * line.
 */
export function commandTree(command: Command, parentPath: string = ''): CommandNode {
  const path = parentPath === '' ? command.name() : `${parentPath} ${command.name()}`
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  const names = commands.map((one) => one.name()).filter((name) => name !== HELP)
  // A command with a default subcommand has the options of both.
  const standIn = defaultCommandOf(command)
  const options = new Map(
    [command, ...(standIn === undefined ? [] : [standIn])]
      .flatMap((one) => help.visibleOptions(one))
      .map((option) => [option.long ?? option.flags, optionNode(option)]),
  )
  return {
    name: command.name(),
    path,
    description: command.summary() || command.description(),
    commands: commands.map((one) => (one.name() === HELP ? helpNode(one, path, names) : commandTree(one, path))),
    options: [...options.values()],
    arguments: command.registeredArguments.map(argumentNode),
  }
}

/** Every command of the tree, each before those below it. */
export function allCommands(node: CommandNode): readonly CommandNode[] {
  return [node, ...node.commands.flatMap(allCommands)]
}

/** The flags of a command's options that take a value. */
export function flagsWithValue({ options }: CommandNode): readonly string[] {
  return options.flatMap(({ flags, values }) => (values === undefined ? [] : flags))
}

function helpNode(command: Command, parentPath: string, names: readonly string[]): CommandNode {
  return {
    name: HELP,
    path: `${parentPath} ${HELP}`,
    description: command.description(),
    commands: [],
    options: [],
    arguments: [{ name: 'command', values: { kind: 'words', words: names }, isVariadic: false }],
  }
}

function optionNode(option: Option): OptionNode {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    values: option.required ? valuesOf(option.flags, option.argChoices) : undefined,
    isRepeatable: option.description.includes('may be repeated'),
  }
}

function argumentNode(argument: Argument): ArgumentNode {
  const name = argument.name()
  return { name, values: valuesOf(`<${name}>`, argument.argChoices), isVariadic: argument.variadic }
}

/** Placeholders name the kind of a value: `<file>`, `<folder>`. */
function valuesOf(flags: string, choices: readonly string[] | undefined): Values {
  if (choices !== undefined) return { kind: 'words', words: choices }
  if (flags.includes('<file>')) return { kind: 'files' }
  return { kind: flags.includes('<folder>') ? 'folders' : 'none' }
}
