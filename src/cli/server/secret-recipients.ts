import { type Command, InvalidArgumentError, Option } from 'commander'
import { recipientKey } from '../../archive/server/recipient-key.ts'
import { fileText } from '../common/options.ts'

/** The option of `stowage serve` that allows secrets in exports. */
export interface SecretRecipientOptions {
  readonly secretRecipient?: readonly string[]
}

export function addSecretRecipients(command: Command): void {
  command.addOption(
    new Option(
      '--secret-recipient <file>',
      'a public key (PEM) for which exports may seal the secrets of automations; may be repeated (default: none)',
    ).argParser(collectedKeys),
  )
}

function collectedKeys(file: string, before: readonly string[] = []): readonly string[] {
  const text = fileText(file)
  try {
    recipientKey(text)
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error))
  }
  return [...before, text]
}
