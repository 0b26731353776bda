import { Command, Option } from 'commander'
import type { ProjectAddress } from '../../archive/remote.ts'
import { withAdvice, checkedUrl, quietOption, retryForOption, retryOf, tokenOf } from '../client/connect.ts'
import { lineProgress, NO_PROGRESS, objectsState, openProgress } from '../client/progress.ts'
import { EXIT, FindingsError, StoppedError, TRANSFER_EXIT_HELP } from '../common/exit.ts'
import { collected, jsonOption } from '../common/options.ts'
import { printJson, printNote } from '../common/output.ts'
import { signalToStop } from '../common/signals.ts'
import { formatCount } from '../common/format.ts'

const EXAMPLES = `
Examples:
  stowage mirror --from https://a.example --to https://b.example --project demo --from-token-file a.txt --to-token-file b.txt
  stowage mirror --from https://a.example --to https://b.example --project demo --to-project copy
  stowage mirror --from https://other.example --to https://b.example --project demo --root $ROOT

Between two Stowage servers, the command copies everything: objects, models, versions, automations and ended runs, under
their own ids. From any other server of the contract, it copies the given roots with everything below them. Run it again
to copy new data, or to continue after a stop. It deletes nothing. STOWAGE_FROM_TOKEN and STOWAGE_TO_TOKEN replace the
files of tokens.
${TRANSFER_EXIT_HELP}`

interface MirrorOptions {
  readonly from: string
  readonly to: string
  readonly project: string
  readonly toProject?: string
  readonly fromToken?: string
  readonly toToken?: string
  readonly fromTokenFile?: string
  readonly toTokenFile?: string
  readonly root?: readonly string[]
  readonly retryFor: number
  readonly quiet?: boolean
  readonly json?: boolean
}

export function mirrorCommand(): Command {
  return new Command('mirror')
    .summary('copy a project from one server to another')
    .description('Copy a project from one server to another. Later runs copy only new data.')
    .requiredOption('--from <url>', 'the server that has the project')
    .requiredOption('--to <url>', 'the server that receives it')
    .addOption(new Option('--project <id>', 'the project').env('STOWAGE_PROJECT').makeOptionMandatory())
    .addOption(new Option('--to-project <id>', 'the project on the other server; the same by default'))
    .addOption(new Option('--from-token-file <file>', 'a file with a token to read with'))
    .addOption(new Option('--to-token-file <file>', 'a file with a token to write with'))
    .addOption(new Option('--from-token <token>', 'a token to read with').env('STOWAGE_FROM_TOKEN'))
    .addOption(new Option('--to-token <token>', 'a token to write with').env('STOWAGE_TO_TOKEN'))
    .addOption(new Option('--root <id>', 'only this object with everything below it; repeatable').argParser(collected))
    .addOption(retryForOption())
    .addOption(quietOption())
    .addOption(jsonOption('print what was copied'))
    .addHelpText('after', EXAMPLES)
    .action(mirror)
}

async function mirror(options: MirrorOptions): Promise<void> {
  const { mirrorProject } = await import('../../archive/index.ts')
  const stop = new AbortController()
  void signalToStop().then((signal) => stop.abort(new StoppedError(signal)))
  let progress = options.quiet === true ? NO_PROGRESS : lineProgress()
  const end = (url: string, projectId: string, credentials: Parameters<typeof tokenOf>[0]): ProjectAddress => ({
    url: checkedUrl(url),
    token: tokenOf(credentials),
    projectId,
    retry: retryOf(options, url, (wait) => progress.wait(wait)),
  })
  const { project, toProject = project, fromToken, fromTokenFile, toToken, toTokenFile, root } = options
  try {
    const from = end(options.from, project, { token: fromToken, tokenFile: fromTokenFile })
    const to = end(options.to, toProject, { token: toToken, tokenFile: toTokenFile })
    if (options.quiet !== true) progress = await openProgress()
    const result = await mirrorProject(from, to, {
      signal: stop.signal,
      ...(root === undefined ? {} : { roots: root }),
      onProgress: (at) => progress.update(objectsState(at)),
    })
    progress.stop()
    if (options.json === true) printJson(result)
    else
      printNote(`mirrored ${formatCount(result.objects, 'object')}, ${result.sent.toLocaleString('en-US')} of them new`)
    if (result.differing > 0) throw new FindingsError(EXIT.failure)
  } catch (error) {
    stop.signal.throwIfAborted()
    throw withAdvice(error, {})
  } finally {
    progress.stop()
  }
}
