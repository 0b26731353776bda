import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { addressGroup, ClientAddresses, type TrustProxy } from '../../src/http/client-address.ts'

function addressOf(trust: TrustProxy | undefined, remoteAddress: string, headers: Record<string, string> = {}): string {
  return new ClientAddresses(trust).of({ headers, socket: { remoteAddress } as IncomingMessage['socket'] })
}

const chain = { 'x-forwarded-for': '203.0.113.9, 198.51.100.7, 10.0.0.2' }

test('without trusted proxies, the client is the address of the connection, regardless of headers', () => {
  assert.equal(addressOf(undefined, '192.0.2.1', chain), '192.0.2.1')
  assert.equal(addressOf({ proxies: ['10.0.0.0/8'] }, '192.0.2.1', chain), '192.0.2.1')
  assert.equal(addressOf({ proxies: 0 }, '192.0.2.1', chain), '192.0.2.1')
})

test('trusted addresses are skipped from the right, and the first other address is the client', () => {
  assert.equal(addressOf({ proxies: ['loopback', '10.0.0.0/8'] }, '::ffff:127.0.0.1', chain), '198.51.100.7')
  assert.equal(addressOf({ proxies: ['127.0.0.1'] }, '127.0.0.1', chain), '10.0.0.2')
  const all = { proxies: ['0.0.0.0/0'] }
  assert.equal(addressOf(all, '127.0.0.1', chain), '203.0.113.9')
  assert.equal(addressOf(all, '127.0.0.1', { 'x-forwarded-for': '203.0.113.9, unknown, 10.0.0.2' }), '10.0.0.2')
  assert.equal(addressOf(all, '127.0.0.1'), '127.0.0.1')
})

test('a number of hops is skipped exactly', () => {
  assert.equal(addressOf({ proxies: 1 }, '127.0.0.1', chain), '10.0.0.2')
  assert.equal(addressOf({ proxies: 2 }, '127.0.0.1', chain), '198.51.100.7')
  assert.equal(addressOf({ proxies: 9 }, '127.0.0.1', chain), '203.0.113.9')
})

test('Forwarded is read only if selected, with quotes, brackets and ports, and never beside the other header', () => {
  const trust = { proxies: 1, header: 'forwarded' } as const
  const headers = { ...chain, forwarded: 'for=192.0.2.60;proto=http, by=203.0.113.43;For="[2001:db8:cafe::17]:4711"' }
  assert.equal(addressOf(trust, '127.0.0.1', headers), '2001:db8:cafe::17')
  assert.equal(addressOf({ ...trust, proxies: 2 }, '127.0.0.1', headers), '192.0.2.60')
  assert.equal(addressOf(trust, '127.0.0.1', chain), '127.0.0.1')
  assert.equal(addressOf(trust, '127.0.0.1', { forwarded: 'for="_hidden"' }), '127.0.0.1')
})

test('an IPv6 client is counted by its network of 64 bits', () => {
  for (const address of ['2001:db8::1', '2001:0db8:0:0:1::', '2001:db8:0:0:ffff:ffff:ffff:ffff', '2001:DB8::192.0.2.1'])
    assert.equal(addressGroup(address), '2001:db8:0:0::/64', address)
  assert.equal(addressGroup('::1'), '0:0:0:0::/64')
  assert.equal(addressGroup('192.0.2.1'), '192.0.2.1')
})

test('an invalid address, network or number of hops is refused', () => {
  for (const proxies of [['proxy.example'], ['10.0.0.0/33'], ['10.0.0.0/8/8'], [''], -1, 1.5, 33])
    assert.throws(() => new ClientAddresses({ proxies }), TypeError, JSON.stringify(proxies))
})
