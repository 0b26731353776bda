import type { Registry } from 'prom-client'

/** The value of a metric with these labels; `undefined` if it has none. */
export async function valueOf(
  registry: Registry,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  const metric = (await registry.getMetricsAsJSON()).find((one) => one.name === name)
  const found = metric?.values.find((value) =>
    Object.entries(labels).every(([label, wanted]) => (value.labels as Record<string, unknown>)[label] === wanted),
  )
  return found?.value
}
