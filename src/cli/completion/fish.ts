import { allCommands, type CommandNode, flagsWithValue, type OptionNode, type Values } from './command-tree.ts'

/** A completion script for fish 3 and later. */
export function fishScript(root: CommandNode): string {
  const { name } = root
  const commands = allCommands(root)
  const below = commands.filter((command) => command !== root).map(({ path }) => quoted(path))
  const valued = commands.flatMap((command) => flagsWithValue(command).map((flag) => quoted(`${command.path} ${flag}`)))
  return `# Completion of ${name} for fish.
function __${name}_path
    set -l path ${name}
    set -l skip 0
    for word in (commandline -opc)[2..-1]
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$path $word"
            case ${below.join(' ')}
                set path "$path $word"
            case ${valued.join(' ')}
                set skip 1
        end
    end
    echo $path
end
function __${name}_at
    test (__${name}_path) = "$argv"
end
complete -c ${name} -e
complete -c ${name} -f
${commands.flatMap((command) => linesOf(name, command)).join('\n')}
`
}

function linesOf(program: string, { path, commands, options, arguments: [argument] }: CommandNode): readonly string[] {
  const start = `complete -c ${program} -n ${quoted(`__${program}_at ${path}`)}`
  return [
    ...commands.map(({ name, description }) => `${start} -a ${name} -d ${quoted(description)}`),
    ...options.map((option) => `${start} ${optionText(option)}`),
    ...(argument === undefined || argument.values.kind === 'none' ? [] : [`${start} ${valueText(argument.values)}`]),
  ]
}

function optionText({ flags, description, values }: OptionNode): string {
  const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`))
  const value = values === undefined ? '' : ` ${values.kind === 'files' ? '-r' : '-x'} ${valueText(values)}`
  return `${names.join(' ')} -d ${quoted(description)}${value}`.trimEnd()
}

function valueText(values: Values): string {
  if (values.kind === 'none') return ''
  if (values.kind === 'files') return '-F'
  return values.kind === 'folders'
    ? "-a '(__fish_complete_directories (commandline -ct))'"
    : `-a ${quoted(values.words.join(' '))}`
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", `\\'`)}'`
}
