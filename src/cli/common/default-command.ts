import type { Command } from 'commander'

const defaults = new WeakMap<Command, Command>()

/** Adds a subcommand that also runs if none is named. Commander knows it afterwards, but has no getter for it. */
export function addDefaultCommand(parent: Command, subcommand: Command): Command {
  defaults.set(parent, subcommand)
  return parent.addCommand(subcommand, { isDefault: true })
}

/** The subcommand that runs when none is named. */
export function defaultCommandOf(parent: Command): Command | undefined {
  return defaults.get(parent)
}
