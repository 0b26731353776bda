import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Effort } from './attempts.ts'
import { Validated } from './validated.ts'

async function started(t: TestContext): Promise<Validated> {
  const validated = await Validated.start()
  t.after(() => validated.close())
  return validated
}

/** The served description and the server agree about what is right and what is wrong, over every operation. */
export function testBothDirections(effort: Effort): void {
  test('requests that follow the served description are not refused as invalid', async (t) => {
    const validated = await started(t)
    const attempts = validated.allowed(effort)
    t.diagnostic(`${attempts.length} requests`)
    const refused: string[] = []
    const succeeded = new Set<string>()
    for (const attempt of attempts) {
      const { status, wrong } = await validated.refusal(attempt)
      if (status < 400) succeeded.add(attempt.found.operation.operationId)
      if (wrong !== undefined) refused.push(`${attempt.name}: ${wrong}`)
    }
    assert.deepEqual(refused, [])
    const operations = validated.conformance.operations().map(({ operation }) => operation.operationId)
    assert.deepEqual(
      operations.filter((one) => !succeeded.has(one)),
      [],
      'each operation succeeded at least once',
    )
  })

  test('requests that break one rule of the served description are refused with an error that names the place', async (t) => {
    const validated = await started(t)
    const attempts = validated.broken(effort)
    t.diagnostic(`${attempts.length} requests`)
    const accepted: string[] = []
    for (const attempt of attempts) {
      const reason = await validated.acceptance(attempt)
      if (reason !== undefined) accepted.push(`${attempt.name}: ${reason}`)
    }
    assert.deepEqual(accepted, [])
  })
}
