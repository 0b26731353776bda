import { existsSync } from 'node:fs'
import { Command, Option } from 'commander'
import type { AccessRight } from '../../access/access.ts'
import { issueToken, type ListedToken, listTokens, revokeToken } from '../../access/token-store.ts'
import { StowageError } from '../../errors.ts'
import { quoted, quotedPath } from '../../object/id.ts'
import { addDefaultCommand } from '../common/default-command.ts'
import { EXIT_HELP } from '../common/exit.ts'
import { collected, durationSeconds, jsonOption } from '../common/options.ts'
import { printJson, printLine, printNote } from '../common/output.ts'
import { addStoragePlace, type StoragePlace, withCredentials } from '../common/shared-storage.ts'

interface TokenOptions extends StoragePlace {
  readonly json?: boolean
}

interface IssueOptions extends StoragePlace {
  readonly project?: readonly string[]
  readonly access?: AccessRight
  readonly ttl: number
  readonly subject?: string
  readonly json?: boolean
}

const EXAMPLES = `
Examples:
  stowage token --project demo --access write              a token for one project, for 30 days
  stowage token --project a --project b --access read      one token for two projects
  stowage token --project '*' --access read --ttl 12h      for all projects, also those to come
  TOKEN=$(stowage token --project demo --access write)     stdout has only the token
  stowage token list                                       issued tokens (never the tokens themselves)
  stowage token revoke 3f0c…                               a running server refuses it within a second

All of this works beside a running server. "stowage token issue --help" explains the options.
${EXIT_HELP}`

export function tokenCommand(): Command {
  const command = new Command('token')
    .summary('issue, list and revoke tokens')
    .description('Issue, list and revoke tokens for reading or writing projects.')
  return addDefaultCommand(command, issueCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand())
    .addHelpText('after', EXAMPLES)
}

function issueCommand(): Command {
  return addStoragePlace(new Command('issue'))
    .summary('print a new token (also without the word "issue")')
    .description("Print a new token, signed with the storage's own key, which is made on first use.")
    .addOption(
      new Option('--project <id>', "what it is for; may be repeated; '*' is every project").argParser(collected),
    )
    .addOption(new Option('--access <right>', 'the right; write includes read').choices(['read', 'write']))
    .addOption(
      new Option('--ttl <duration>', 'how long it holds: 90s, 15m, 12h, 30d')
        .argParser(durationSeconds)
        .default(durationSeconds('30d'), '30d'),
    )
    .addOption(new Option('--subject <name>', 'whose it is, for lists, logs and bounds (default: a name of its own)'))
    .addOption(jsonOption('print {"token", "jti", ...} on one line'))
    .addHelpText('after', '\nExample:\n  stowage token --project demo --access write --ttl 12h --subject ada')
    .allowExcessArguments()
    .action(issue)
}

/**
 * Checks for missing options only here, after the parser has complained about unknown ones: those are more often the
 * cause.
 */
async function issue(options: IssueOptions, command: Command): Promise<void> {
  const { project, access } = options
  if (command.args.length > 0)
    command.error(
      `${quoted(command.args[0])} is not a command of "stowage token"; the commands are issue, list and revoke`,
    )
  if (project === undefined)
    return command.error("--project is missing: name what the token is for, such as --project demo or --project '*'")
  if (access === undefined) return command.error('--access is missing: it must be --access read or --access write')
  const projects = new Map(project.map((id) => [id, access]))
  await withCredentials(options, async (credentials) => {
    const { token, record } = await issueToken(credentials, {
      projects,
      ...(options.subject === undefined ? {} : { subject: options.subject }),
      ttlSeconds: options.ttl,
    })
    if (options.json) {
      printJson({ token, ...record })
      return
    }
    printNote(`token ${record.jti} may ${access} ${nameProjects(record.projects)} until ${record.expiresAt}`)
    printLine(token)
  })
}

function listCommand(): Command {
  return addStoragePlace(new Command('list'))
    .summary('list issued tokens')
    .description(
      'Show the tokens that were issued, the oldest first; tokens that expired more than 30 days ago are omitted.',
    )
    .addOption(jsonOption('print one JSON object a line'))
    .addHelpText(
      'after',
      `\nExamples:\n  stowage token list\n  stowage token list --json | jq -r 'select(.subject == "ada") | .jti'`,
    )
    .action(async (options: TokenOptions) => {
      if (options.records === undefined && !existsSync(options.data))
        throw new StowageError(
          'invalid_request',
          `there is no folder ${quotedPath(options.data)}; name the data folder with --data`,
        )
      await withCredentials(options, async (credentials) => {
        for (const token of await listTokens(credentials))
          if (options.json) printJson(token)
          else printLine(lineOf(token))
      })
    })
}

function lineOf({ jti, state, expiresAt, subject, projects }: ListedToken): string {
  const rights = [...new Set(Object.values(projects))].join(', ')
  return `${jti}  ${state.padEnd(7)}  until ${expiresAt}  ${subject}  ${rights} ${nameProjects(projects)}`
}

function nameProjects(projects: Readonly<Record<string, AccessRight>>): string {
  return Object.keys(projects)
    .map((id) => (id === '*' ? 'every project' : JSON.stringify(id)))
    .join(', ')
}

function revokeCommand(): Command {
  return addStoragePlace(new Command('revoke'))
    .summary('revoke a token')
    .description('Revoke a token. A running server refuses it within a second.')
    .argument('<jti>', "the token's id, as the list shows it")
    .addOption(jsonOption('print {"revoked": <jti>}'))
    .addHelpText('after', '\nExample:\n  stowage token revoke 3f0c5a9be2d14c6f8a7b6c5d4e3f2a1b')
    .action(async (jti: string, options: TokenOptions) => {
      await withCredentials(options, (credentials) => revokeToken(credentials, jti))
      if (options.json) printJson({ revoked: jti })
      else printLine(`revoked ${jti}`)
    })
}
