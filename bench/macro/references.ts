import { timeProgram } from '../measure.ts'
import type { Dataset, Sample } from './dataset.ts'

const MEGABYTE = 1e6

/** MB of JSON a second that `gunzip` makes on one core. */
export async function gunzipRate({ gzipSample }: Dataset): Promise<number> {
  return await rate(gzipSample, '-dc')
}

/** MB of JSON a second that `gzip -1` takes on one core. */
export async function gzipRate({ arraySample }: Dataset): Promise<number> {
  return await rate(arraySample, '-1c')
}

async function rate({ file, jsonBytes }: Sample, option: string): Promise<number> {
  return jsonBytes / MEGABYTE / (await timeProgram('gzip', [option, file]))
}
