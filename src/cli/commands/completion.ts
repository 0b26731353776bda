import { Argument, Command } from 'commander'
import { bashScript } from '../completion/bash.ts'
import { type CommandNode, commandTree } from '../completion/command-tree.ts'
import { fishScript } from '../completion/fish.ts'
import { zshScript } from '../completion/zsh.ts'
import { EXIT_HELP } from '../common/exit.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } satisfies Record<
  string,
  (root: CommandNode) => string
>

const EXAMPLES = `
Examples:
  stowage completion bash > ~/.local/share/bash-completion/completions/stowage     with the package bash-completion
  eval "$(stowage completion bash)"                                                without it, in ~/.bashrc
  stowage completion zsh > ~/.zfunc/_stowage                                       with "fpath+=~/.zfunc" before compinit in ~/.zshrc
  stowage completion fish > ~/.config/fish/completions/stowage.fish

The script knows commands, options, choices, files and folders. Print it again after an upgrade.
${EXIT_HELP}`

export function completionCommand(): Command {
  return new Command('completion')
    .summary('print a script that completes commands in a shell')
    .description('Print a script that lets bash, zsh or fish complete commands, options and their values.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', EXAMPLES)
    .action((shell: keyof typeof SCRIPTS, _options: unknown, command: Command) => {
      const script = SCRIPTS[shell](commandTree(command.parent ?? command))
      process.stdout.write(script)
    })
}
