import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { CompactEncrypt, decodeProtectedHeader } from 'jose'
import { exportToFile, importFiles } from '../../src/archive/index.ts'
import { ArchiveReader } from '../../src/archive/read-archive.ts'
import { SecretOpener } from '../../src/archive/sealed-secrets.ts'
import { recipientKey } from '../../src/archive/server/recipient-key.ts'
import { inProcess } from '../automation-server/support.ts'
import { temporaryFolder } from '../support/folder.ts'
import { PROJECT, SECRETS, site, withSecret } from './support.ts'

interface KeyPair {
  readonly publicKey: string
  readonly privateKey: string
}

function asPem({ publicKey, privateKey }: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }): KeyPair {
  return {
    publicKey: publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    privateKey: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  }
}

const RECIPIENT = asPem(generateKeyPairSync('x25519'))
const OTHER = asPem(generateKeyPairSync('ec', { namedCurve: 'P-256' }))

/** The member `secrets` of the automations in an archive. */
async function sealedIn(path: string): Promise<unknown[]> {
  const archive = await ArchiveReader.open(path)
  try {
    const records = archive.entries.find(({ name }) => name.startsWith('records/'))
    assert.ok(records !== undefined)
    const lines = (await archive.inflated(records)).toString().split('\n').slice(0, -1)
    return lines
      .map((line) => JSON.parse(line) as { kind: string; value: { secrets?: unknown; sealed?: unknown } })
      .filter(({ kind }) => kind === 'automation')
      .map(({ value }) => {
        assert.equal(value.sealed, undefined)
        return value.secrets
      })
  } finally {
    await archive.close()
  }
}

test('secrets that are sealed for a key reach a project with another id, on a server with another key', async (t) => {
  const folder = temporaryFolder(t)
  const pairs = [RECIPIENT, OTHER, asPem(generateKeyPairSync('rsa', { modulusLength: 2_048 }))]
  const source = await withSecret(
    t,
    pairs.map(({ publicKey }) => publicKey),
  )
  for (const [at, { publicKey, privateKey }] of pairs.entries()) {
    const path = join(folder, `${at}.tar`)
    await exportToFile(source.address, path, { sealSecretsFor: publicKey })
    let seen: unknown
    const executor = inProcess(async ({ runFile, backend }) => {
      seen = runFile.functionInputs
      await backend.report({ sequence: 1, status: 'succeeded', message: '' })
    })
    const target = site(t, undefined, executor, { secretKey: { id: 'elsewhere', key: new Uint8Array(32).fill(9) } })
    const address = { ...target.address, projectId: 'copy' }
    assert.deepEqual((await importFiles(address, [path], { secretsKey: privateKey })).disabledAutomations, [])
    const copy = target.extension.project('copy')
    assert.deepEqual((await copy.automations.get(source.id)).inputs, { tolerance: 1, apiKey: '******' })
    await copy.runs.start(source.id)
    await target.extension.idle()
    assert.deepEqual(seen, { tolerance: 1, ...SECRETS })
    const again = await importFiles(address, [path], { secretsKey: privateKey })
    assert.deepEqual([again.records.created, again.records.updated], [0, 0])
  }
})

test('without the key the secrets are left out, and another key is refused before its automation is written', async (t) => {
  const source = await withSecret(t, [RECIPIENT.publicKey])
  const path = join(temporaryFolder(t), 'sealed.tar')
  await exportToFile(source.address, path, { sealSecretsFor: RECIPIENT.publicKey })
  const without = site(t)
  assert.deepEqual((await importFiles(without.address, [path])).disabledAutomations, [source.id])
  const { enabled, inputs } = await without.extension.project(PROJECT).automations.get(source.id)
  assert.deepEqual([enabled, inputs], [false, { tolerance: 1, apiKey: '******' }])
  const target = site(t)
  const wrong = importFiles(target.address, [path], { secretsKey: OTHER.privateKey })
  const { id } = recipientKey(OTHER.publicKey)
  await assert.rejects(wrong, { code: 'invalid_request', message: new RegExp(`but the given key is ${id}$`) })
  assert.deepEqual((await target.extension.project(PROJECT).automations.list()).items, [])
  await assert.rejects(importFiles(target.address, [path], { secretsKey: RECIPIENT.publicKey }), {
    code: 'invalid_request',
    message: /not a private key as PEM/,
  })
})

test('a writer gets secrets only for keys that the operator has named', async (t) => {
  const source = await withSecret(t, [RECIPIENT.publicKey])
  const folder = temporaryFolder(t)
  const refused = exportToFile(source.address, join(folder, '1.tar'), { sealSecretsFor: OTHER.publicKey })
  await assert.rejects(refused, { code: 'forbidden', message: /does not seal secrets for the key .*secretRecipients/ })
  const unnamed = await withSecret(t, [])
  const none = exportToFile(unnamed.address, join(folder, '2.tar'), { sealSecretsFor: RECIPIENT.publicKey })
  await assert.rejects(none, { code: 'forbidden' })
  const both = { sealSecretsFor: RECIPIENT.publicKey, hasSealedSecrets: true }
  await assert.rejects(exportToFile(source.address, join(folder, '3.tar'), both), TypeError)
  const ed25519 = asPem(generateKeyPairSync('ed25519')).publicKey
  await assert.rejects(exportToFile(source.address, join(folder, '4.tar'), { sealSecretsFor: ed25519 }), {
    code: 'invalid_request',
    message: /X25519, EC and RSA .* this one is ed25519/,
  })
  for (const sealedFor of ['', 'nonsense', 'x'.repeat(4_000)]) {
    const url = `http://in.process/api/v1/projects/${PROJECT}/export/automations?sealedFor=${sealedFor}`
    assert.equal((await source.service.fetch(new Request(url))).status, 400)
  }
})

test('sealed secrets are a JWE that names its key and its automation; damaged and moved ones are refused', async (t) => {
  const source = await withSecret(t, [RECIPIENT.publicKey])
  const path = join(temporaryFolder(t), 'sealed.tar')
  await exportToFile(source.address, path, { sealSecretsFor: RECIPIENT.publicKey })
  const [sealed] = await sealedIn(path)
  assert.ok(typeof sealed === 'string')
  const { alg, enc, kid } = decodeProtectedHeader(sealed)
  const { id, publicKey } = recipientKey(RECIPIENT.publicKey)
  assert.deepEqual([alg, enc, kid], ['ECDH-ES+A256KW', 'A256GCM', id])
  const opener = new SecretOpener(RECIPIENT.privateKey)
  assert.deepEqual(await opener.open(sealed, source.id), SECRETS)
  await assert.rejects(opener.open(sealed, 'another'), { code: 'corrupt_data', message: /another automation/ })
  const flipped = sealed.slice(0, -1) + (sealed.endsWith('A') ? 'Q' : 'A')
  await assert.rejects(opener.open(flipped, source.id), { code: 'corrupt_data' })
  await assert.rejects(opener.open('no JWE', source.id), { code: 'invalid_request' })
  const foreign = await new CompactEncrypt(Buffer.from('"text"'))
    .setProtectedHeader({ alg: 'ECDH-ES+A256KW', enc: 'A256GCM', kid: id })
    .encrypt(publicKey)
  await assert.rejects(opener.open(foreign, source.id), { code: 'corrupt_data' })
})
