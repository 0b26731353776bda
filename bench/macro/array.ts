import { download } from '../download.ts'
import { describe, MB, repeat, type Row, sample, timeProgram } from '../measure.ts'
import type { Target } from '../upload.ts'
import type { Dataset } from './dataset.ts'

const RATIO_MIN = 1

/** A root with everything below it as a gzipped JSON array, against `gzip -1` of the same array on one core. */
export async function measureArray(
  target: Target,
  { first, arrayFile }: Dataset,
  repetitions: number,
): Promise<readonly Row[]> {
  const url = `${target.url}/objects/${target.projectId}/${first.rootId}`
  const headers = { Authorization: `Bearer ${target.token}`, Accept: 'application/json', 'Accept-Encoding': 'gzip' }
  await download(url, headers)
  const megabytes = first.jsonBytes / MB
  const rounds = await repeat(repetitions, async () => {
    const [{ seconds }] = await download(url, headers)
    const referenceSeconds = await timeProgram('gzip', ['-1', '-c', arrayFile])
    return { own: megabytes / seconds, reference: megabytes / referenceSeconds }
  })
  const ratio = sample(rounds.map(({ own, reference }) => own / reference))
  return [
    {
      what: 'JSON array, gzip',
      value: describe(sample(rounds.map(({ own }) => own)), 'MB/s'),
      reference: `gzip -1 ${describe(sample(rounds.map(({ reference }) => reference)), 'MB/s')}, ratio ${describe(ratio, 'x')}`,
      target: `>= ${RATIO_MIN} x`,
      met: ratio.median >= RATIO_MIN,
    },
  ]
}
