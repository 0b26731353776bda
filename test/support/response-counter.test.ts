import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CountedResponse, ResponseCounter } from '../../bench/load/response-counter.ts'

const SIZED = 'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world'
const CHUNKED =
  'HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;name=value\r\n world\r\n0\r\nTrailer: x\r\n\r\n'
const CONTINUED = `HTTP/1.1 100 Continue\r\n\r\n${SIZED}`
const EMPTY = 'HTTP/1.1 204 No Content\r\n\r\n'

function count(text: string, pieceBytes: number, hasBody: boolean = true): CountedResponse | undefined {
  const counter = new ResponseCounter(hasBody)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const response = counter.push(bytes.subarray(at, at + pieceBytes))
    if (response !== undefined) return at + pieceBytes >= bytes.length ? response : undefined
  }
  return undefined
}

test('the end of a response is found and its body counted, wherever it is cut', () => {
  for (let pieceBytes = 1; pieceBytes <= 200; pieceBytes++) {
    assert.deepEqual(count(SIZED, pieceBytes), { status: 200, bytes: 11 })
    assert.deepEqual(count(CHUNKED, pieceBytes), { status: 404, bytes: 11 })
    assert.deepEqual(count(CONTINUED, pieceBytes), { status: 200, bytes: 11 })
    assert.deepEqual(count(EMPTY, pieceBytes), { status: 204, bytes: 0 })
  }
  assert.deepEqual(count(SIZED.replace('hello world', ''), 7, false), { status: 200, bytes: 0 })
  assert.equal(count(SIZED.slice(0, -1), 7), undefined)
})

test('what is no response, or has no end, is refused', () => {
  assert.throws(() => count('SMTP ready\r\n\r\n', 100), /not a response/)
  assert.throws(() => count('HTTP/1.1 200 OK\r\n\r\n', 100), /neither a length nor chunks/)
  assert.throws(() => count('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', 100), /size of a chunk/)
  assert.throws(() => count(`${SIZED}HTTP/1.1`, 1_000), /follow the end/)
})
