import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { deflateRawSync, gzipSync } from 'node:zlib'
import { memoryBackend } from '../../adapters/memory/index.ts'
import { BLOCKS_MEDIA_TYPE, encodeEnd } from '../../src/blocks/ready-blocks.ts'
import type { Limits } from '../../src/limits.ts'
import type { StorageBackend } from '../../src/storage/backend.ts'
import { checkStore } from '../../src/store/upkeep/check.ts'
import { blockOf, blockUpload, bodyOf, fragment, inBlocks, lineOf, type MadeBlock } from '../support/ready-blocks.ts'
import { PlainObjectStore } from './plain-object-store.ts'
import { type Ask, bothCores, errorOf, jsonUpload, openService } from './served.ts'

function objectText(id: string, note: string, children: readonly string[] = []): string {
  return JSON.stringify({ id, note, children: children.map((referencedId) => ({ referencedId })) })
}

/** A root, and below it enough objects for several blocks. */
function model(objects = 200): string[] {
  const ids = Array.from({ length: objects }, (_, i) => `object-${i}`)
  const texts = ids.map((id, i) => objectText(id, `${id} `.repeat(20 + (i % 7) * 10)))
  return [...texts, objectText('root', 'all', ids)]
}

/** A text that compresses to half of it, so that the pack does not lie inside a record. */
function digits(seed: number): string {
  return Array.from({ length: 20 }, (_, i) => createHash('sha256').update(`${seed} ${i}`).digest('hex')).join('')
}

async function summaryOf(answer: Response): Promise<Record<string, unknown>> {
  const summary = (await answer.json()) as Record<string, unknown>
  assert.equal(answer.status, 200, JSON.stringify(summary))
  return summary
}

async function linesOf(ask: Ask, id = 'root'): Promise<string[]> {
  const answer = await ask(`/objects/p/${id}`, { headers: { Accept: 'text/plain' } })
  assert.equal(answer.status, 200)
  return (await answer.text()).trimEnd().split('\n').toSorted()
}

async function findingsOf(backend: StorageBackend): Promise<unknown[]> {
  const findings: unknown[] = []
  for await (const finding of checkStore(backend)) findings.push(finding)
  return findings
}

test('ready blocks are stored as any other upload, and download byte for byte', async (t) => {
  const texts = model(1_000)
  for (const [core, ask] of await bothCores(t)) {
    const { objects, created, differing, rewritten } = await summaryOf(
      await ask('/objects/p', blockUpload(bodyOf(inBlocks(texts)))),
    )
    assert.deepEqual(
      { objects, created, differing, rewritten },
      { objects: 1_001, created: 1_001, differing: 0, rewritten: 0 },
      core,
    )
    assert.deepEqual(await linesOf(ask), texts.map((text) => lineOf(text).trimEnd()).toSorted(), core)
  }
})

test('blocks are stored in the pack unchanged, and the server compresses only the remaining objects', async () => {
  const backend = memoryBackend()
  const service = openService({ backend })
  const texts = Array.from({ length: 400 }, (_, i) => objectText(`o${i}`, digits(i)))
  const blocks = inBlocks(texts)
  await summaryOf(await service.fetch(new Request('http://in.process/objects/p', blockUpload(bodyOf(blocks)))))
  const packs: Uint8Array[] = []
  for await (const blobs of backend.blobs.list(''))
    for (const { name, sizeBytes } of blobs) packs.push(await backend.blobs.read(name, 0, sizeBytes))
  assert.equal(packs.length, 1)
  const full = blocks.filter(({ rawBytes }) => rawBytes >= 8_192)
  assert.ok(full.length > 5)
  for (const { stored } of full) assert.ok(Buffer.from(packs[0]).includes(Buffer.from(stored)))
  assert.deepEqual(await findingsOf(backend), [])
  await service.close()
})

test('blocks with held, repeated and differing objects keep the first text of each', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    const texts = model(100)
    await summaryOf(await ask('/objects/p', { ...jsonUpload([]), body: `[${texts.slice(0, 30).join()}]` }))
    const other = objectText('object-3', 'another text')
    const twice = objectText('twice', 'first '.repeat(100))
    const sent = [...texts.slice(0, 3), other, ...texts.slice(4), twice, texts[60], objectText('twice', 'second')]
    const { objects, created, differing } = await summaryOf(
      await ask('/objects/p', blockUpload(bodyOf(inBlocks(sent)))),
    )
    assert.deepEqual({ objects, created, differing }, { objects: 102, created: 72, differing: 2 }, core)
    assert.equal(await (await ask('/objects/p/object-3/single')).text(), texts[3], core)
    assert.equal(await (await ask('/objects/p/twice/single')).text(), twice, core)
    assert.deepEqual(await linesOf(ask), texts.map((text) => lineOf(text).trimEnd()).toSorted(), core)
  }
})

test('an object larger than a block is sent in its own block', async (t) => {
  const large = objectText('large', 'x'.repeat(300_000))
  for (const [core, ask] of await bothCores(t)) {
    const { created } = await summaryOf(
      await ask('/objects/p', blockUpload(bodyOf(inBlocks([objectText('a', ''), large, objectText('b', '')])))),
    )
    assert.equal(created, 3, core)
    assert.equal(await (await ask('/objects/p/large/single')).text(), large, core)
  }
})

test("blocks reach a host's own store too", async () => {
  const store = new PlainObjectStore()
  const service = openService({ store })
  // More than is inflated at a time, into memory that is used again.
  const texts = model(1_000)
  const upload = new Request('http://in.process/objects/p', blockUpload(bodyOf(inBlocks(texts))))
  const { created } = await summaryOf(await service.fetch(upload))
  assert.equal(created, 1_001)
  assert.deepEqual(
    await linesOf((path, init) => service.fetch(new Request(`http://in.process${path}`, init))),
    texts.map((text) => lineOf(text).trimEnd()).toSorted(),
  )
  await service.close()
})

const GOOD = lineOf(objectText('good', 'n'.repeat(9_000)))

interface Refusal {
  readonly what: string
  readonly body: Uint8Array
  readonly status: number
  readonly code: string
  readonly message: RegExp
}

function refusalsOfLines(): Refusal[] {
  const lines: readonly (readonly [what: string, line: string | Uint8Array, code: string, message: RegExp])[] = [
    ['another id', 'x\t{"id":"y"}\n', 'invalid_blocks', /start with the id of its object \(block 1, line 1, id "y"/],
    ['no id', 'x\t{"a":1}\n', 'invalid_object', /must have an "id" \(block 1, line 1/],
    ['no tab', '{"id":"x"}\n', 'invalid_blocks', /an id of at most 512 bytes and a tab \(block 1, line 1\)/],
    ['a tab far behind', `${'x'.repeat(600)}\t{"id":"x"}\n`, 'invalid_blocks', /at most 512 bytes and a tab/],
    ['a tab between tokens', 'x\t{"id":\t"x"}\n', 'invalid_blocks', /as it is kept/],
    ['a raw line separator', 'x\t{"id":"x","t":"\u2028"}\n', 'invalid_blocks', /U\+2028/],
    ['space before the object', 'x\t {"id":"x"}\n', 'invalid_object', /starts with "\{"/],
    ['space behind it', 'x\t{"id":"x"} \n', 'invalid_json', /end with "\}"/],
    ['two objects', 'x\t{"id":"x"}{"id":"x"}\n', 'invalid_json', /expected the end|after/],
    ['an array', 'x\t["id"]\n', 'invalid_object', /must be a JSON object/],
    ['a broken object', 'x\t{"id":"x",}\n', 'invalid_json', /a key in quotes/],
    ['bytes that are not UTF-8', Buffer.from('x\t{"id":"x","t":"\xff"}\n', 'latin1'), 'invalid_utf8', /not UTF-8/],
    ['an empty line', '\n', 'invalid_blocks', /and a tab/],
    ['an id that is none', 'x\u0001\t{"id":"x\\u0001"}\n', 'invalid_id', /control/],
    [
      'a line over the border',
      'x\t{"id":"x","t":"cut',
      'invalid_blocks',
      /must end with a line feed \(block 1, line 1\)/,
    ],
  ]
  return lines.map(([what, line, code, message]) => ({
    what,
    body: bodyOf([
      blockOf(GOOD),
      blockOf(Buffer.concat([Buffer.from(lineOf(objectText('b', ''))), Buffer.from(line)]), { objects: 2 }),
    ]),
    status: 400,
    code,
    message,
  }))
}

function refusalsOfFrames(): Refusal[] {
  const good = blockOf(GOOD)
  const { stored, rawBytes } = good
  const whole = bodyOf([good])
  const bomb = blockOf(lineOf(objectText('bomb', 'x'.repeat(100_000))))
  const invalid = (what: string, body: Uint8Array | MadeBlock, message: RegExp): Refusal => ({
    what,
    body: 'stored' in body ? bodyOf([good, body]) : body,
    status: 400,
    code: 'invalid_blocks',
    message,
  })
  const frame =
    /must be one DEFLATE fragment that is not final, ends on a byte boundary and inflates to the \d+ bytes of its header \(block 1\)/
  return [
    invalid('a wrong CRC', blockOf(GOOD, { rawCrc32: 1 }), /do not match their CRC-32 \(block 1\)/),
    invalid('too many objects', blockOf(GOOD, { objects: 2 }), /holds 1 lines, but its header names 2 objects/),
    invalid('too few raw bytes', blockOf(GOOD, { rawBytes: rawBytes - 1 }), frame),
    invalid('too many raw bytes', blockOf(GOOD, { rawBytes: rawBytes + 1 }), frame),
    invalid('a bomb', { ...bomb, rawBytes: 16_000 }, frame),
    invalid('a final stream', blockOf(GOOD, { stored: deflateRawSync(GOOD) }), frame),
    invalid(
      'two final streams',
      blockOf(GOOD + GOOD, {
        stored: Buffer.concat([deflateRawSync(GOOD), deflateRawSync(GOOD)]),
        objects: 1,
        rawBytes: 16_000,
      }),
      frame,
    ),
    invalid('bytes behind the fragment', blockOf(GOOD, { stored: Buffer.concat([stored, Buffer.from('x')]) }), frame),
    invalid('a fragment that is cut', blockOf(GOOD, { stored: stored.subarray(0, -1) }), frame),
    invalid('a reference to what came before', blockOf(GOOD, { stored: continued(GOOD) }), frame),
    invalid('no objects', blockOf(GOOD, { objects: 0 }), /at least one object/),
    invalid('several objects in a large block', blockOf(GOOD + GOOD), /more than 16384 bytes must hold one object/),
    invalid(
      'more bytes than a compressor makes',
      blockOf(GOOD, { stored: Buffer.alloc(20_000) }),
      /more than any compressor/,
    ),
    invalid(
      'another opening',
      Buffer.concat([Buffer.from('STOWPACK'), whole.subarray(8)]),
      /does not start with "STOWBLKS"/,
    ),
    invalid(
      'a later version',
      Buffer.concat([whole.subarray(0, 8), Buffer.of(2, 0, 0, 0), whole.subarray(12)]),
      /version 1/,
    ),
    invalid('an empty body', Buffer.alloc(0), /inside the opening/),
    invalid('no end', whole.subarray(0, -16), /cut short \(block 1\)/),
    invalid('half a block', whole.subarray(0, 40), /cut short \(block 0\)/),
    invalid('bytes behind the end', Buffer.concat([whole, Buffer.of(0)]), /bytes follow the end/),
    invalid(
      'an end with other counts',
      bodyOf([good], encodeEnd(2, 1)),
      /names 2 blocks and 1 objects, but the body holds 1 and 1/,
    ),
  ]
}

/** What zlib makes of a text that it has seen already. */
function continued(text: string): Uint8Array {
  const stream = fragment(Buffer.from(text + text))
  return stream.subarray(fragment(Buffer.from(text)).length)
}

test('a body that is not a valid list of blocks is refused with 400, and nothing is stored', async (t) => {
  for (const [core, ask] of await bothCores(t)) {
    await summaryOf(await ask('/objects/p', jsonUpload([{ id: 'before' }])))
    for (const { what, body, status, code, message } of [...refusalsOfLines(), ...refusalsOfFrames()]) {
      const refused = await errorOf(await ask('/objects/p', blockUpload(body)))
      assert.deepEqual([refused.status, refused.code], [status, code], `${core}: ${what}: ${refused.message}`)
      assert.match(refused.message, message, what)
      assert.equal((await ask('/objects/p/good/single')).status, 404, what)
    }
    assert.equal(await (await ask('/objects/p/before/single')).text(), '{"id":"before"}')
  }
})

test('limits are refused from the headers, before the blocks arrive', async () => {
  const limits: Partial<Limits> = { objectBytesMax: 20_000, inflatedBytesMax: 60_000, objectsMax: 50 }
  const service = openService({ limits })
  const large = blockOf(lineOf(objectText('large', 'x'.repeat(30_000))))
  const many = inBlocks(Array.from({ length: 60 }, (_, i) => objectText(`o${i}`, 'n')))
  const much = inBlocks(Array.from({ length: 40 }, (_, i) => objectText(`o${i}`, 'n'.repeat(2_000))))
  const cases: readonly (readonly [readonly MadeBlock[], string])[] = [
    [[large], 'object_too_large'],
    [many, 'too_many_objects'],
    [much, 'inflated_too_large'],
  ]
  for (const [blocks, code] of cases) {
    const body = bodyOf(blocks)
    // Only the headers are true: what inflates is never looked at.
    const init = blockUpload(body)
    const refused = await errorOf(await service.fetch(new Request('http://in.process/objects/p', init)))
    assert.deepEqual([refused.status, refused.code], [413, code], refused.message)
  }
  const text = objectText('text', 'x'.repeat(15_000))
  const small = openService({ limits: { objectBytesMax: 10_000 } })
  const refused = await errorOf(
    await small.fetch(new Request('http://in.process/objects/p', blockUpload(bodyOf(inBlocks([text]))))),
  )
  assert.equal(refused.code, 'object_too_large')
  await small.close()
  await service.close()
})

test('ready blocks come without a content encoding, and not inside a form', async (t) => {
  const body = bodyOf(inBlocks(model(10)))
  for (const [core, ask] of await bothCores(t)) {
    const headers = { 'Content-Type': BLOCKS_MEDIA_TYPE, 'Content-Encoding': 'gzip' }
    const encoded = await errorOf(
      await ask('/objects/p', { method: 'POST', headers, body: new Uint8Array(gzipSync(body)) }),
    )
    assert.deepEqual([encoded.status, encoded.code], [415, 'unsupported_media_type'], core)
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(body)], { type: BLOCKS_MEDIA_TYPE }), 'blocks')
    assert.equal((await errorOf(await ask('/objects/p', { method: 'POST', body: form }))).status, 415, core)
  }
})
