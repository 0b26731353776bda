import { Command, InvalidArgumentError, Option } from 'commander'
import { DEFAULT_LIMITS, type Limits } from '../../limits.ts'
import { EXIT_HELP } from '../common/exit.ts'
import { addFunctions } from '../server/function-options.ts'
import { collected, jsonOption, portNumber, positiveInteger, wholeNumber } from '../common/options.ts'
import { LOG_FORMATS, LOG_LEVELS } from '../common/log.ts'
import { addQuotas } from '../server/quota-options.ts'
import { addConnectionOptions } from '../server/connection-options.ts'
import { addOperationsListener } from '../server/operations-options.ts'
import type { ServeOptions } from '../server/run-server.ts'
import { addSecretRecipients } from '../server/secret-recipients.ts'
import { addUpkeep } from '../server/upkeep-options.ts'
import { addPages } from '../server/serve-pages.ts'
import { addStoragePlace } from '../common/shared-storage.ts'
import { storageOption } from '../common/storage.ts'

const BLOB_CACHE_BYTES_MIN = 64 * 1_048_576

const EXAMPLES = `
Examples:
  stowage serve                                             the folder .stowage on http://127.0.0.1:8642
  stowage serve --data /var/lib/stowage --host 0.0.0.0      another folder, for other machines too
  stowage serve --port 0 --json                             any free port; prints {"url": ..., "pid": ...}
  stowage serve --storage memory                            keeps nothing but tokens
  stowage serve --records postgres://db/stowage --blobs 's3://models?endpoint=https://s3.example'   one of several servers
  stowage serve --upload-status 201 --cors '*'              for clients that expect 201, and for browsers
  stowage serve --metrics --log-level info                  metrics on http://127.0.0.1:9464/metrics, a line for each request
  stowage serve --health 9464                               /healthz on http://127.0.0.1:9464 too, independent of clients
  stowage serve --trust-proxy loopback                      behind nginx on this machine: trusts its X-Forwarded-For
  stowage serve --function checker.js --function take-off.js   automation functions, each in its own process
  stowage serve --function checker.js --function-env API_URL --function-timeout 15m   with a variable of this environment
  stowage serve --function-network sender.js --function-isolation required     one that needs the network; never without bubblewrap
  stowage serve --collect-every 1d                          frees objects that no version and no pin leads to
  stowage serve --request-bytes-max 104857600               requests of up to 100 MB

GET /healthz answers 200 while the server accepts requests and its storage answers, otherwise 503; /healthz/live answers
200 while the process lives.
The web pages are at /web. With STOWAGE_TOKEN in the environment, the command also prints a link that signs in once.
Every other request needs a token: "stowage token --help". SIGTERM and SIGINT stop it cleanly; a second one at once.
${EXIT_HELP}`

export function serveCommand(): Command {
  const command = addStoragePlace(new Command('serve'))
    .summary('serve a data folder, or shared records and blobs, over HTTP')
    .description(
      'Serve a data folder over HTTP, or records and blobs that several servers share. Prints the URL on its first line once it listens, then where the pages are.',
    )
    .addOption(storageOption())
    .addOption(
      new Option('--port <n>', 'the port to listen on; 0 takes a free one').argParser(portNumber).default(8_642),
    )
    .addOption(
      new Option('--host <address>', 'the address to listen on; 0.0.0.0 for other machines too').default('127.0.0.1'),
    )
    .addOption(new Option('--prefix <path>', 'the prefix of all paths, such as /models'))
    .addOption(
      new Option('--upload-status <code>', 'the status of a successful upload').choices(['200', '201']).default('200'),
    )
    .addOption(
      new Option('--cors <origin>', "an origin whose pages may use the service, or '*'; may be repeated").argParser(
        collected,
      ),
    )
    .addOption(
      new Option('--grace-ms <n>', 'how long requests may take to finish after SIGTERM')
        .argParser(positiveInteger)
        .default(10_000),
    )
  addMemoryAndCache(command)
  addPages(command)
  addQuotas(command)
  addSecretRecipients(command)
  addConnectionOptions(command)
  addLogOptions(command)
  addOperationsListener(command)
  addFunctions(command)
  addUpkeep(command)
  for (const name of limitNames()) {
    command.addOption(
      new Option(`--${dashed(name)} <n>`, LIMIT_HELP[name]).argParser(positiveInteger).default(DEFAULT_LIMITS[name]),
    )
  }
  return command
    .addOption(jsonOption('print the line as {"url", "pid", ...}'))
    .addHelpText('after', EXAMPLES)
    .action(serve)
}

function addMemoryAndCache(command: Command): void {
  command
    .addOption(
      new Option(
        '--memory-bytes-max <n>',
        'memory for tables, plans and buffers in flight (default: 100663296)',
      ).argParser(positiveInteger),
    )
    .addOption(
      new Option(
        '--memory-wait-ms <n>',
        'how long a request waits for memory before it is answered 503 (default: 10000)',
      ).argParser(positiveInteger),
    )
    .addOption(
      new Option(
        '--body-bytes-per-second-min <n>',
        'the minimum rate of a request body, over any 20 s that the server waits for it; 0 for no minimum (default: 500)',
      ).argParser(wholeNumber),
    )
    .addOption(
      new Option(
        '--blob-cache-bytes-max <n>',
        'the size of the cache in the data folder for blobs in S3; at least 67108864, or 0 for none',
      )
        .argParser(blobCacheBytes)
        .default(10_000_000_000),
    )
}

function blobCacheBytes(text: string): number {
  const bytes = wholeNumber(text)
  if (bytes !== 0 && bytes < BLOB_CACHE_BYTES_MIN)
    throw new InvalidArgumentError(`It must be 0 or at least ${BLOB_CACHE_BYTES_MIN}.`)
  return bytes
}

function addLogOptions(command: Command): void {
  command
    .addOption(
      new Option('--log-level <level>', 'the lowest level written to stderr; info and debug: each request')
        .choices(LOG_LEVELS)
        .default('warn'),
    )
    .addOption(
      new Option('--log-format <format>', 'plain lines, or one JSON object per line')
        .choices(LOG_FORMATS)
        .default('text'),
    )
}

const LIMIT_HELP: Readonly<Record<keyof Limits, string>> = {
  objectBytesMax: 'bytes of one object',
  requestBytesMax: 'bytes of one upload on the wire',
  inflatedBytesMax: 'bytes of one upload after decompression',
  objectsMax: 'objects in one upload',
  nestingMax: 'levels of arrays and objects in one object',
  partsMax: 'parts of one multipart upload',
  partHeaderBytesMax: "bytes of one part's headers",
  idListBytesMax: 'bytes of a request that lists ids',
  assignedIdsMax: 'how many ids assigned to objects without one a response lists',
}

function limitNames(): readonly (keyof Limits)[] {
  return Object.keys(LIMIT_HELP) as (keyof Limits)[]
}

function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`)
}

async function serve(options: ServeOptions, command: Command): Promise<void> {
  const { keepYoungSpace } = await import('../server/heap.ts')
  keepYoungSpace()
  const { runServer } = await import('../server/run-server.ts')
  await runServer(options, command)
}
