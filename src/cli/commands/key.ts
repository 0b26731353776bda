import type { CredentialStore } from '../../credentials/credential-store.ts'
import { existsSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { listTokens } from '../../access/token-store.ts'
import { type HeldKey, heldKeys, isValidAt, removeEndedKeys, rotateKey } from '../../credentials/key-ring.ts'
import { StowageError } from '../../errors.ts'
import { quotedPath } from '../../object/id.ts'
import { EXIT_HELP } from '../common/exit.ts'
import { collected, durationSecondsOrNone, jsonOption } from '../common/options.ts'
import { printJson, printLine } from '../common/output.ts'
import { addStoragePlace, type StoragePlace, withCredentials } from '../common/shared-storage.ts'
import { KEY_PURPOSES, type KeyPurpose, keyRingOf } from '../server/key-rings.ts'

const VALID_FOR_DEFAULT = '30d'

const EXAMPLES = `
Examples:
  stowage key rotate                                  new keys; the old ones are valid for 30 more days
  stowage key rotate --valid-until 2027-01-31         ... until midnight (UTC) at the beginning of that day
  stowage key rotate --key tokens --valid-for 0       a key leaked: every token that it signed ends now
  stowage key list                                    the keys and their last dates (never the keys themselves)

All of this works beside a running server, which uses the new keys within a second (for secrets, with its next sweep, within 10
seconds), without a restart.
${EXIT_HELP}`

export function keyCommand(): Command {
  return new Command('key')
    .summary('rotate and list the keys that sign tokens and seal secrets')
    .description(
      'Rotate and list the keys of a storage: those that sign tokens, those that seal the secret inputs of automations,' +
        ' and those that seal the sessions of people who are signed in to the pages.',
    )
    .addCommand(rotateCommand())
    .addCommand(listCommand())
    .addHelpText('after', EXAMPLES)
}

interface RotateOptions extends StoragePlace {
  readonly key?: readonly string[]
  readonly validUntil?: string
  readonly validFor?: number
  readonly json?: boolean
}

function rotateCommand(): Command {
  return addStoragePlace(new Command('rotate'))
    .summary('make new keys; the old ones stay valid until a date')
    .description(
      'Make new keys. Old keys stay valid until the date that is given, or until the date of an earlier rotation if that is sooner.' +
        ' A running server reseals secrets with the new key. An old key of secrets is removed after its date, once nothing is sealed with it any more.',
    )
    .addOption(
      new Option('--key <purpose>', `${KEY_PURPOSES.join(', ')}; may be repeated (default: all)`).argParser(
        collectedPurposes,
      ),
    )
    .addOption(
      new Option('--valid-until <date>', 'when the old keys end: 2027-01-31 or 2027-01-31T12:00:00Z').argParser(
        instant,
      ),
    )
    .addOption(
      new Option(
        '--valid-for <duration>',
        `the same from now on: 0, 90s, 15m, 12h, 30d (default: ${VALID_FOR_DEFAULT})`,
      )
        .argParser(durationSecondsOrNone)
        .conflicts('validUntil'),
    )
    .addOption(jsonOption('print {"purpose", "id", "previous", ...} for each key'))
    .addHelpText(
      'after',
      '\nExamples:\n  stowage key rotate --valid-for 7d\n  stowage key rotate --key tokens --valid-until 2027-01-31',
    )
    .action(rotate)
}

async function rotate(options: RotateOptions): Promise<void> {
  const { key: purposes = KEY_PURPOSES } = options
  refuseAbsentFolder(options)
  await withCredentials(options, async (credentials) => {
    for (const purpose of KEY_PURPOSES.filter((one) => purposes.includes(one)))
      await rotateOne(credentials, purpose, options)
  })
}

async function rotateOne(credentials: CredentialStore, purpose: KeyPurpose, options: RotateOptions): Promise<void> {
  const ring = keyRingOf(purpose, credentials)
  const previousValidUntil = previousEnd(options)
  // Secrets may still be sealed with a key that has ended: the server removes that one.
  if (purpose !== 'secrets') await removeEndedKeys(ring)
  const [current, previous] = await rotateKey(ring, previousValidUntil)
  const validUntil = previous.validUntil ?? previousValidUntil
  const shortened = purpose === 'tokens' ? await tokensEndingAt(credentials, validUntil) : 0
  if (options.json === true)
    printJson({ purpose, id: current.id, previous: { id: previous.id, validUntil }, tokensCutShort: shortened })
  else printLine(rotatedLine({ purpose, current, previous, validUntil, shortened }))
}

interface Rotated {
  readonly purpose: KeyPurpose
  readonly current: HeldKey
  readonly previous: HeldKey
  readonly validUntil: string
  readonly shortened: number
}

function rotatedLine({ purpose, current, previous, validUntil, shortened }: Rotated): string {
  const ends = Date.parse(validUntil) <= Date.now() ? 'has ended' : `is valid until ${validUntil}`
  const tokens = shortened === 0 ? '' : `; tokens to issue again, because they were valid for longer: ${shortened}`
  return `${purpose}: the new key is ${current.id}; the old key ${previous.id} ${ends}${tokens}`
}

/** How many tokens end with their key, before their own time. */
async function tokensEndingAt(credentials: CredentialStore, end: string): Promise<number> {
  const tokens = await listTokens(credentials)
  return tokens.filter(({ state, expiresAt }) => state !== 'revoked' && expiresAt === end).length
}

function previousEnd({ validUntil, validFor }: RotateOptions): string {
  if (validUntil !== undefined) return validUntil
  const seconds = validFor ?? durationSecondsOrNone(VALID_FOR_DEFAULT)
  return new Date(Date.now() + seconds * 1_000).toISOString()
}

interface ListOptions extends StoragePlace {
  readonly json?: boolean
}

function listCommand(): Command {
  return addStoragePlace(new Command('list'))
    .summary('list the keys')
    .description('List the keys and their last dates, the current one of each purpose first.')
    .addOption(jsonOption('print one JSON object a line'))
    .addHelpText(
      'after',
      `\nExamples:\n  stowage key list\n  stowage key list --json | jq -r 'select(.state == "current") | .id'`,
    )
    .action(async (options: ListOptions) => {
      refuseAbsentFolder(options)
      await withCredentials(options, async (credentials) => {
        for (const purpose of KEY_PURPOSES)
          for (const key of await heldKeys(keyRingOf(purpose, credentials)))
            if (options.json === true) printJson(viewOf(purpose, key))
            else printLine(lineOf(purpose, key))
      })
    })
}

function viewOf(purpose: KeyPurpose, key: HeldKey): Readonly<Record<string, unknown>> {
  const { id, createdAt = null, validUntil = null } = key
  return { purpose, id, state: stateOf(key), createdAt, validUntil }
}

function lineOf(purpose: KeyPurpose, key: HeldKey): string {
  const { id, createdAt, validUntil } = key
  const since = createdAt === undefined ? '' : `  since ${createdAt}`
  const until = validUntil === undefined ? '' : `  until ${validUntil}`
  return `${purpose.padEnd(8)}  ${id}  ${stateOf(key).padEnd(7)}${since}${until}`
}

function stateOf(key: HeldKey): 'current' | 'old' | 'ended' {
  if (key.validUntil === undefined) return 'current'
  return isValidAt(key, Date.now()) ? 'old' : 'ended'
}

function refuseAbsentFolder({ data, records }: StoragePlace): void {
  if (records !== undefined || existsSync(data)) return
  throw new StowageError('invalid_request', `there is no folder ${quotedPath(data)}; name the data folder with --data`)
}

function collectedPurposes(text: string, before?: readonly string[]): readonly string[] {
  if (!KEY_PURPOSES.some((purpose) => purpose === text))
    throw new InvalidArgumentError(`It must be ${KEY_PURPOSES.join(', ')}.`)
  return collected(text, before)
}

const DATE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?$/

/** ISO 8601: a day, which begins at midnight UTC, or a moment with its zone. */
function instant(text: string): string {
  const timeMs = DATE.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(timeMs))
    throw new InvalidArgumentError('It must be a date, such as 2027-01-31 or 2027-01-31T12:00:00Z.')
  if (timeMs < Date.now()) throw new InvalidArgumentError('It must lie ahead; --valid-for 0 ends the old keys now.')
  return new Date(timeMs).toISOString()
}
