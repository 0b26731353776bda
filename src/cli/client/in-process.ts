import { openAccess } from '../../access/open.ts'
import type { ClientOptions } from '../../client/index.ts'
import type { CredentialStore } from '../../credentials/credential-store.ts'
import type { StorageBackend } from '../../storage/backend.ts'

/** A service over the storage in this process, which is called without a network. It is closed with the storage. */
export async function withServiceOver<T>(
  backend: StorageBackend,
  credentials: CredentialStore,
  use: (server: ClientOptions) => Promise<T>,
): Promise<T> {
  const { archives } = await import('../../archive/server/archives.ts')
  const { automation } = await import('../../automation-server/index.ts')
  const { storedSecretKeys } = await import('../../automation-server/secret-keys.ts')
  const { createObjectService } = await import('../../service/service.ts')
  const service = createObjectService({
    backend,
    access: openAccess(),
    extensions: [automation(), archives({ secretKeys: storedSecretKeys(credentials), secretRecipients: 'any' })],
  })
  try {
    return await use({
      url: 'http://folder.invalid',
      token: undefined,
      fetch: (url, init) => service.fetch(new Request(url, init)),
    })
  } finally {
    await service.close()
  }
}
