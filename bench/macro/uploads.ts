import { describe, MB, repeat, type Row, sample, timeProgram } from '../measure.ts'
import { sendFolder } from '../sender.ts'
import type { Target } from '../upload.ts'
import type { Dataset } from './dataset.ts'

const REQUESTS_AT_A_TIME = 4
const RATIO_MIN = 0.12

/**
 * Durable uploads of gzipped batches of 1 MB, four at a time, each round into a project of its own, against `gunzip` of
 * the same bytes on one core.
 */
export async function measureUploads(
  target: Target,
  { first, gzipFile }: Dataset,
  repetitions: number,
): Promise<readonly Row[]> {
  const megabytes = first.uploadedJsonBytes / MB
  const rounds = await repeat(repetitions, async (round) => {
    const seconds = await sendFolder(
      { ...target, projectId: `${target.projectId}-${round}` },
      first.uploads,
      REQUESTS_AT_A_TIME,
    )
    const referenceSeconds = await timeProgram('gzip', ['-dc', gzipFile])
    return { own: megabytes / seconds, reference: megabytes / referenceSeconds }
  })
  const ratio = sample(rounds.map(({ own, reference }) => own / reference))
  return [
    {
      what: `upload, ${REQUESTS_AT_A_TIME} at a time`,
      value: describe(sample(rounds.map(({ own }) => own)), 'MB/s'),
      reference: `gunzip ${describe(sample(rounds.map(({ reference }) => reference)), 'MB/s')}, ratio ${describe(ratio, 'x')}`,
      target: `>= ${RATIO_MIN} x`,
      met: ratio.median >= RATIO_MIN,
    },
  ]
}
