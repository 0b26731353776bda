import { allCommands, type CommandNode, flagsWithValue, type Values } from './command-tree.ts'

/** A completion script for bash 3.2 and later, the version of macOS. */
export function bashScript(root: CommandNode): string {
  const { name } = root
  const commands = allCommands(root)
  return `# Completion of ${name} for bash.
_${name}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]}
  local path='${name}' commands='' flags='' argument='' word skip='' i
  # Bash takes the sign of equality for a word of its own.
  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -n $skip ]]; then
      [[ $word == '=' ]] || skip=''
      continue
    fi
    case "$path $word" in
${caseOf(
  commands.filter((command) => command !== root).map(({ path }) => path),
  'path="$path $word"',
)}
${caseOf(
  commands.flatMap((command) => flagsWithValue(command).map((flag) => `${command.path} ${flag}`)),
  'skip=1',
)}
    esac
  done
  case "$path $prev" in
${valueCases(commands).join('\n')}
  esac
  case $path in
${commands.map(commandCase).join('\n')}
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  elif [[ -n $commands ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$cur"))
  elif [[ -n $argument ]]; then
    _${name}_paths "$argument"
  fi
}
_${name}_paths() {
  COMPREPLY=()
  # With this, readline itself completes paths, and quotes what it has to.
  if [[ $1 == files ]]; then
    compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$cur"))
  else
    compopt -o dirnames 2>/dev/null || COMPREPLY=($(compgen -d -- "$cur"))
  fi
}
complete -F _${name} ${name}
`
}

function caseOf(paths: readonly string[], action: string): string {
  return `      ${paths.map(quoted).join('|')}) ${action} ;;`
}

/** The completions after a flag, in one line for all flags that share them. */
function valueCases(commands: readonly CommandNode[]): readonly string[] {
  const patterns = new Map<string, string[]>()
  for (const { path, options } of commands) {
    for (const { flags, values } of options) {
      if (values === undefined) continue
      const action = valueAction(path, values)
      const same = patterns.get(action) ?? []
      patterns.set(action, same)
      same.push(...flags.map((flag) => quoted(`${path} ${flag}`)))
    }
  }
  return [...patterns].map(([action, same]) => `    ${same.join('|')}) ${action}; return ;;`)
}

function valueAction(path: string, values: Values): string {
  if (values.kind === 'none') return 'COMPREPLY=()'
  if (values.kind === 'words') return `COMPREPLY=($(compgen -W ${quoted(values.words.join(' '))} -- "$cur"))`
  return `_${path.split(' ')[0]}_paths ${values.kind}`
}

function commandCase({ path, commands, options, arguments: [argument] }: CommandNode): string {
  const names = commands.map(({ name }) => name)
  const words = argument?.values.kind === 'words' ? argument.values.words : []
  const flags = options.flatMap((option) => option.flags)
  const kind = argument?.values.kind === 'files' || argument?.values.kind === 'folders' ? argument.values.kind : ''
  return `    ${quoted(path)}) commands=${quoted([...names, ...words].join(' '))} flags=${quoted(flags.join(' '))} argument=${quoted(kind)} ;;`
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
