import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type FilePart, fileParts } from '../../src/decode/multipart.ts'
import { type Limits, DEFAULT_LIMITS } from '../../src/limits.ts'
import { type Part, codeOf, errorOf, file, inChunks, multipart, randomFrom } from './support.ts'
import { parseContentType } from '../../src/decode/header-value.ts'

const BOUNDARY = 'a-boundary'

interface ReadPart extends Omit<FilePart, 'bytes'> {
  readonly content: string
}

interface ReadOptions {
  readonly chunk?: number
  readonly limits?: Partial<Limits>
  readonly boundary?: string
}

async function read(body: Uint8Array, { chunk, limits, boundary = BOUNDARY }: ReadOptions = {}): Promise<ReadPart[]> {
  const parts: ReadPart[] = []
  for await (const { bytes, ...about } of fileParts(inChunks(body, chunk), {
    boundary,
    limits: { ...DEFAULT_LIMITS, ...limits },
  })) {
    const pieces: Buffer[] = []
    for await (const piece of bytes) pieces.push(Buffer.from(piece))
    parts.push({ ...about, content: Buffer.concat(pieces).toString('latin1') })
  }
  return parts
}

test('files are read with their headers, regardless of chunks', async () => {
  const random = randomFrom(3)
  const tricky = [
    '',
    '\r\n',
    '\r\n--',
    `\r\n--${BOUNDARY.slice(0, -1)}`,
    '-',
    '--',
    `--${BOUNDARY.slice(1)}\r\n\r`,
    '\r\r\n\n',
  ]
  for (let round = 0; round < 25; round++) {
    const contents = Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
      Array.from({ length: Math.floor(random() * 6) }, () => tricky[Math.floor(random() * tricky.length)]).join(
        random() < 0.5 ? 'x' : '',
      ),
    )
    const body = multipart(contents.map((content) => file(content, 'application/json', 'Content-Encoding: identity')))
    for (const chunk of [1, 3, 11, 29, 65_536]) {
      const parts = await read(body, { chunk })
      assert.deepEqual(
        parts.map(({ content }) => content),
        contents,
      )
      parts.forEach((part, index) => {
        assert.deepEqual(part, {
          index,
          name: 'file',
          filename: 'batch',
          contentType: parseContentType('application/json'),
          contentEncoding: 'identity',
          content: part.content,
        })
      })
    }
  }
})

test('large files are read whole', async () => {
  const content = gzipSync(Buffer.from(Array.from({ length: 400_000 }, (_, i) => (i * i) % 251)), { level: 0 })
  const parts = await read(multipart([file(content), file(content)]), { chunk: 30_001 })
  for (const part of parts) assert.ok(Buffer.from(part.content, 'latin1').equals(content))
  assert.equal(parts.length, 2)
})

test('a body cut at any place is refused, regardless of chunks', async () => {
  const body = multipart([file('[{"id":"a"}]', 'application/json'), file('[{"id":"b"}]')])
  for (let length = 0; length < body.length - '\r\n'.length; length++) {
    for (const chunk of [16, 65_536]) {
      assert.equal(await codeOf(read(body.subarray(0, length), { chunk })), 'invalid_multipart', `cut at ${length}`)
    }
  }
  assert.equal((await read(body.subarray(0, -2))).length, 2)
})

test('a part is a file by its file name, its name or its type', async () => {
  const disposition = 'Content-Disposition: form-data; name='
  const accepted: readonly (readonly string[])[] = [
    [`${disposition}"anything"; filename="a.json"`],
    [`${disposition}x; filename=a`],
    [`${disposition}"x"; filename*=UTF-8''a%20b`],
    [`${disposition}"file"`],
    [`${disposition}"object-batch"`],
    [`content-disposition: FORM-DATA; NAME="x"`, 'content-type: text/plain; charset=utf-8'],
    ...['application/json', 'application/gzip', 'application/octet-stream'].map((type) => [
      `${disposition}"x"`,
      `Content-Type: ${type}`,
    ]),
  ]
  for (const headers of accepted)
    assert.equal((await read(multipart([{ headers, content: '[]' }])))[0].content, '[]', headers.join())
  const [quotedName] = await read(multipart([{ headers: [`${disposition}"a\\"é;b"; filename=""`], content: '' }]))
  assert.equal(quotedName.name, 'a"é;b')
})

test('no part is silently dropped or cut', async () => {
  const good = file('[]')
  const disposition = 'Content-Disposition: form-data; name="file"'
  const bad: Record<string, Part> = {
    'a form field': { headers: ['Content-Disposition: form-data; name="comment"'], content: 'hello' },
    'a field of another type': {
      headers: ['Content-Disposition: form-data; name="comment"', 'Content-Type: image/png'],
      content: 'hello',
    },
    'no headers': { headers: [], content: '[]' },
    'no Content-Disposition': { headers: ['Content-Type: application/json'], content: '[]' },
    'a space before the header': { headers: [` ${disposition}`], content: '[]' },
    'a line without a colon before it': { headers: ['nonsense', disposition], content: '[]' },
    'no name': { headers: ['Content-Disposition: form-data; filename="a"'], content: '[]' },
    'an attachment': { headers: ['Content-Disposition: attachment; name="file"; filename="a"'], content: '[]' },
    'an open quote': { headers: ['Content-Disposition: form-data; name="file'], content: '[]' },
    'two names': { headers: [`${disposition}; name="file"`], content: '[]' },
    'two dispositions': { headers: [disposition, disposition], content: '[]' },
    'two types': {
      headers: [disposition, 'Content-Type: text/plain', 'Content-Type: application/gzip'],
      content: '[]',
    },
    'a transfer encoding': { headers: [disposition, 'Content-Transfer-Encoding: base64'], content: 'W10=' },
    'a line break in the name': { headers: ['Content-Disposition: form-data; name="fi\nle"'], content: '[]' },
  }
  for (const [what, part] of Object.entries(bad)) {
    for (const parts of [[part], [good, part], [part, good], [good, part, good]]) {
      for (const chunk of [3, 65_536])
        assert.equal(await codeOf(read(multipart(parts), { chunk })), 'invalid_multipart', what)
    }
  }
  assert.match(
    (await errorOf(read(multipart([good, bad['a form field']]))))?.message ?? '',
    /part 1 is the form field "comment"/,
  )
})

test('a part that ends inside its headers is refused', async () => {
  const part = (lines: string): string => `--${BOUNDARY}\r\n${lines}`
  const good = 'Content-Disposition: form-data; name="file"\r\n\r\n[]\r\n'
  for (const open of ['', '\r\n', 'Content-Disposition: form-data; name="file"\r\n']) {
    for (const body of [part(open) + part(good), part(good) + part(open) + part(good), part(good) + part(open)]) {
      for (const chunk of [1, 65_536]) {
        assert.equal(
          await codeOf(read(Buffer.from(`${body}--${BOUNDARY}--\r\n`), { chunk })),
          'invalid_multipart',
          body,
        )
      }
    }
  }
})

test('bytes after the closing boundary are refused, except white space', async () => {
  const body = multipart([file('[]')])
  for (const tail of ['', '\r\n', '  \r\n\r\n']) {
    assert.equal((await read(Buffer.concat([body, Buffer.from(tail)]), { chunk: 9 })).length, 1)
  }
  for (const tail of ['x', body.toString(), `\r\n--${BOUNDARY}--`, `${' '.repeat(40_000)}x`]) {
    for (const chunk of [1, body.length, 65_536]) {
      assert.equal(
        await codeOf(read(Buffer.concat([body, Buffer.from(tail)]), { chunk })),
        'invalid_multipart',
        tail.slice(0, 50),
      )
    }
  }
})

test('a preamble is skipped, and a body without parts is refused', async () => {
  assert.equal(
    (await read(Buffer.concat([Buffer.from('to old readers: ignore this\r\n'), multipart([file('[]')])]), { chunk: 4 }))
      .length,
    1,
  )
  for (const body of ['', '\r\n', 'no boundary at all', `--${BOUNDARY}--\r\n`, `--${BOUNDARY}`]) {
    for (const chunk of [1, 65_536])
      assert.equal(await codeOf(read(Buffer.from(body), { chunk })), 'invalid_multipart', body)
  }
})

test('a boundary has 1 to 70 characters', async () => {
  for (const boundary of ['x', 'b'.repeat(70), "'()+_,-./:=?"]) {
    assert.equal((await read(multipart([file('[]')], boundary), { boundary })).length, 1)
  }
  for (const boundary of ['', 'b'.repeat(71), 'a\r\nb', 'é', 'ends with a space ']) {
    assert.equal(await codeOf(read(multipart([file('[]')], boundary), { boundary })), 'invalid_multipart', boundary)
  }
  const missing = fileParts(inChunks(multipart([file('[]')])), { boundary: undefined, limits: DEFAULT_LIMITS })
  assert.equal(await codeOf(missing.next()), 'invalid_multipart')
})

test('parts up to the limit are accepted, and one more is refused', async () => {
  const parts = (count: number): Buffer => multipart(Array.from({ length: count }, () => file('[]')))
  assert.equal((await read(parts(5), { limits: { partsMax: 5 } })).length, 5)
  for (const chunk of [10, 65_536])
    assert.equal(await codeOf(read(parts(6), { chunk, limits: { partsMax: 5 } })), 'too_many_parts')
})

test('part headers up to the limit are accepted, and one byte more is refused', async () => {
  const limits = { partHeaderBytesMax: 1_000 }
  const lines = file('[]').headers.reduce((sum, line) => sum + line.length + '\r\n'.length, 0)
  const sized = (bytes: number): Buffer =>
    multipart([file('[]'), file('[]', undefined, `X-Long: ${'x'.repeat(bytes - lines - 'X-Long: \r\n'.length)}`)])
  for (const chunk of [100, 65_536]) {
    assert.equal((await read(sized(1_000), { chunk, limits })).length, 2)
    assert.equal(await codeOf(read(sized(1_001), { chunk, limits })), 'part_header_too_large')
  }
  const endless = Buffer.concat([Buffer.from(`--${BOUNDARY}\r\n`), Buffer.alloc(200_000, 'x: y\r\n')])
  assert.equal(await codeOf(read(endless, { limits })), 'part_header_too_large')
  const manyLines = multipart([file('[]', undefined, ...Array.from({ length: 90 }, (_, i) => `X-${i}: y`))])
  assert.equal(await codeOf(read(manyLines, { limits: { partHeaderBytesMax: 500 } })), 'part_header_too_large')
})

test('an unread part is skipped without reading ahead, and the body is released', async () => {
  const body = multipart([file('x'.repeat(100_000)), file('[]')])
  const names: number[] = []
  for await (const part of fileParts(inChunks(body), { boundary: BOUNDARY, limits: DEFAULT_LIMITS }))
    names.push(part.index)
  assert.deepEqual(names, [0, 1])

  let pulled = 0
  let returned = false
  async function* counted(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of inChunks(body, 1_000)) {
        pulled += chunk.length
        yield chunk
      }
    } finally {
      returned = true
    }
  }
  for await (const part of fileParts(counted(), { boundary: BOUNDARY, limits: DEFAULT_LIMITS })) {
    for await (const piece of part.bytes) if (piece.length > 0) break
    assert.ok(pulled <= 2_000, `${pulled} bytes were pulled for the first piece`)
    break
  }
  assert.ok(returned)
})
