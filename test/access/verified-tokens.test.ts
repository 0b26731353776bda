import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VerifiedTokens } from '../../src/access/verified-tokens.ts'

const UNTIL_MS = 60_000

function setUp(): {
  readonly tokens: VerifiedTokens
  readonly verified: string[]
  readonly state: { nowMs: number; isKeyHeld: boolean | Error }
} {
  const verified: string[] = []
  const state: { nowMs: number; isKeyHeld: boolean | Error } = { nowMs: 1_000, isKeyHeld: true }
  const verify = async (
    token: string,
  ): Promise<{
    principal: { subject: string }
    fromMs: number
    untilMs: number
    isKeyHeld: () => Promise<boolean>
  }> => {
    verified.push(token)
    if (token.startsWith('bad') || state.nowMs >= UNTIL_MS || state.isKeyHeld !== true) throw new Error('refused')
    const isKeyHeld = async (): Promise<boolean> => {
      if (state.isKeyHeld instanceof Error) throw state.isKeyHeld
      return state.isKeyHeld
    }
    return { principal: { subject: token }, fromMs: state.nowMs, untilMs: UNTIL_MS, isKeyHeld }
  }
  return { tokens: new VerifiedTokens(verify, { now: () => state.nowMs }), verified, state }
}

test('a token that holds is verified once, each other one on its own', async () => {
  const { tokens, verified } = setUp()
  for (const token of ['a', 'b', 'a', 'b']) assert.equal((await tokens.principalOf(token)).subject, token)
  await Promise.all(['c', 'c'].map((token) => tokens.principalOf(token)))
  assert.deepEqual(verified, ['a', 'b', 'c'])
})

test('a refused token is verified each time', async () => {
  const { tokens, verified } = setUp()
  for (let i = 0; i < 3; i++) await assert.rejects(tokens.principalOf('bad'), /refused/)
  assert.equal(verified.length, 3)
})

test('a known token is refused from the moment at which it expires', async () => {
  const { tokens, state } = setUp()
  await tokens.principalOf('a')
  state.nowMs = UNTIL_MS - 1
  await tokens.principalOf('a')
  state.nowMs = UNTIL_MS
  await assert.rejects(tokens.principalOf('a'), /refused/)
})

test('a known token is verified again when the clock went back', async () => {
  const { tokens, verified, state } = setUp()
  await tokens.principalOf('a')
  state.nowMs = 999
  await tokens.principalOf('a')
  assert.equal(verified.length, 2)
})

test('a known token is refused once its key is gone or cannot be found', async () => {
  for (const isKeyHeld of [false, new Error('no key of this name')]) {
    const { tokens, state } = setUp()
    await tokens.principalOf('a')
    state.isKeyHeld = isKeyHeld
    await assert.rejects(tokens.principalOf('a'), /refused/)
  }
})

test('very many tokens do not pile up: the oldest are verified again', async () => {
  const { tokens, verified } = setUp()
  await tokens.principalOf('first')
  for (let i = 0; i < 2_000; i++) await tokens.principalOf(`${i}${'x'.repeat(400)}`)
  await tokens.principalOf('first')
  assert.equal(verified.filter((token) => token === 'first').length, 2)
})
