import { allCommands, type ArgumentNode, type CommandNode, type OptionNode, type Values } from './command-tree.ts'

/** A completion script for zsh 5 and later, for `fpath` or to be sourced. */
export function zshScript(root: CommandNode): string {
  const { name } = root
  return `#compdef ${name}
# Completion of ${name} for zsh.
${allCommands(root).map(functionOf).join('\n')}
if [[ $funcstack[1] == _${name} ]]; then
  _${name} "$@"
else
  compdef _${name} ${name}
fi
`
}

function functionOf(command: CommandNode): string {
  return `${functionName(command)}() {\n${command.commands.length === 0 ? leaf(command) : branch(command)}\n}`
}

function leaf({ options, arguments: args }: CommandNode): string {
  return `  _arguments -s ${[...options.map(optionSpec), ...args.map(argumentSpec)].join(' \\\n    ')}`
}

/** Options before the name of the command below, and that with all of its own. */
function branch({ commands, options }: CommandNode): string {
  return `  local state line curcontext="$curcontext"
  _arguments -s -C ${[...options.map(optionSpec), quoted('1: :->command'), quoted('*:: :->rest')].join(' \\\n    ')}
  case $state in
    command)
      local -a commands=(${commands.map(({ name, description }) => quoted(`${name}:${description}`)).join(' \\\n        ')})
      _describe -t commands command commands ;;
    rest)
      case $line[1] in
${commands.map((command) => `        ${command.name}) ${functionName(command)} ;;`).join('\n')}
      esac ;;
  esac`
}

function functionName({ path }: CommandNode): string {
  return `_${path.replaceAll(/[ -]/g, '_')}`
}

function optionSpec({ flags, description, values, isRepeatable }: OptionNode): string {
  const explained = `[${escaped(description)}]${values === undefined ? '' : `:value:${action(values)}`}`
  const excluded = isRepeatable ? '*' : flags.length > 1 ? `(${flags.join(' ')})` : ''
  // A value may follow the flag after a sign of equality, too.
  return flags
    .map((flag) => quoted(`${excluded}${flag}${values !== undefined && flag.startsWith('--') ? '=' : ''}${explained}`))
    .join(' ')
}

function argumentSpec({ name, values, isVariadic }: ArgumentNode): string {
  return quoted(`${isVariadic ? '*' : ''}:${escaped(name)}:${action(values)}`)
}

function action(values: Values): string {
  if (values.kind === 'none') return ' '
  if (values.kind === 'words') return `(${values.words.join(' ')})`
  return values.kind === 'files' ? '_files' : '_files -/'
}

function escaped(text: string): string {
  return text.replaceAll(/[\\[\]:]/g, String.raw`\$&`)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
