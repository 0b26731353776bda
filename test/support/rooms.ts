/**
 * The folders of the source: what each one owns, and the only other folders that it may import. `test/tidy.test.ts`
 * checks the imports against this list, and `npm run rooms` renders it into `ARCHITECTURE.md`.
 */

export interface Room {
  readonly owns: string
  readonly mayImport: readonly string[]
}

/**
 * From the innermost folder to the outermost. An entry point that has an entry of its own is no part of its folder.
 * `src` stands for the files that lie directly in it.
 */
export const ROOMS: Readonly<Record<string, Room>> = {
  src: {
    owns: "The words that every room uses: error codes, limits, the environment (time, timers, randomness) and the logger's shape.",
    mayImport: [],
  },
  'src/delta': {
    owns: 'Deltas between two texts of an object: finding and applying them, and their CRC-32. Runs in browsers.',
    mayImport: [],
  },
  'src/async': {
    owns: 'Concurrency, each kind once: semaphore, keyed mutex, concurrency limit, single flight, requests in flight, background loops, yielding to the event loop.',
    mayImport: ['src'],
  },
  'src/automation/author/inputs': {
    owns: 'The inputs of a function: one plain description, from which validator, JSON Schema and form values are made. Patterns are translated to RE2 and never run in V8.',
    mayImport: ['src'],
  },
  'src/compression': {
    owns: 'DEFLATE fragments: a pool that makes them in the thread pool, their inverse, and CRC-32 arithmetic.',
    mayImport: ['src'],
  },
  'src/data-folder': { owns: 'A folder of data: its lock, durable files, keys that rotate.', mayImport: ['src'] },
  'src/memory': {
    owns: 'The memory budget and what is leased from it, with a fair share for each party; byte-bounded caches.',
    mayImport: ['src'],
  },
  'src/store/bytes': { owns: 'Byte codecs, bitmaps, growable lists, reading ahead.', mayImport: ['src'] },
  'src/client/common': {
    owns: 'What all parts of the client share: errors, concurrency, content ids, gzip.',
    mayImport: ['src', 'src/async'],
  },
  'src/object': {
    owns: 'What stages hand to each other: batches, sets of ids, selections, and the contracts between them.',
    mayImport: ['src', 'src/memory'],
  },
  'src/storage': {
    owns: 'The storage seam: `RecordStore`, `BlobStore`, their errors and limits, and the guard over a driver.',
    mayImport: ['src', 'src/async'],
  },
  'adapters/common': { owns: 'What several adapters share.', mayImport: ['src/storage'] },
  'adapters/memory': { owns: 'Records and blobs in memory.', mayImport: ['src/storage'] },
  'src/access': {
    owns: 'Authentication and authorization: JWT, claims, the tokens of a data folder.',
    mayImport: ['src', 'src/async', 'src/data-folder', 'src/object'],
  },
  'src/client/http': {
    owns: 'Requests of the client: connections, answers, retries.',
    mayImport: ['src/async', 'src/client/common'],
  },
  'src/events': { owns: 'Events that a service emits while it runs.', mayImport: ['src', 'src/object'] },
  'src/inspect': {
    owns: "One object's bytes to facts: the JSON scanner, references, claims, masks.",
    mayImport: ['src', 'src/object'],
  },
  'src/openapi/description': {
    owns: 'The parts that every area of the OpenAPI document is built from.',
    mayImport: ['src', 'src/object'],
  },
  'src/store/pack': {
    owns: 'The pack format: its tables, its segments and their readers.',
    mayImport: ['src', 'src/async', 'src/compression', 'src/memory', 'src/object', 'src/storage', 'src/store/bytes'],
  },
  'adapters/level': {
    owns: 'Records and blobs in one LevelDB; its verification and salvage.',
    mayImport: ['adapters/common', 'src/async', 'src/data-folder', 'src/storage'],
  },
  'src/client/download': {
    owns: 'Graphs and lists from a server or a cache, resumed after a break.',
    mayImport: ['src/async', 'src/client/common', 'src/client/http', 'src/delta'],
  },
  'src/client/resources': {
    owns: 'Models, versions and runs, on servers that have them.',
    mayImport: ['src/client/common', 'src/client/http'],
  },
  'src/decode': {
    owns: 'Bytes of a request to elements of its array, or to lists of ids; bounded in every way.',
    mayImport: ['src', 'src/async', 'src/delta', 'src/inspect', 'src/memory', 'src/object'],
  },
  'src/emit': {
    owns: 'Selections to bytes: lines or JSON, gzip or identity, ranges, masks.',
    mayImport: ['src', 'src/compression', 'src/inspect', 'src/object'],
  },
  'src/openapi/objects': {
    owns: 'The OpenAPI area of the object endpoints.',
    mayImport: ['src', 'src/delta', 'src/openapi/description'],
  },
  'src/store/plain': {
    owns: "The wrapper of a host's own `ObjectStore`.",
    mayImport: ['src', 'src/inspect', 'src/object'],
  },
  'src/storage/conformance': {
    owns: 'The conformance suites of the storage seam and of `ObjectStore`, and the benchmark.',
    mayImport: ['src/object', 'src/storage', 'src/store/plain'],
  },
  'src/store/records': {
    owns: "Keys and values of the store's records, catalogues of packs.",
    mayImport: ['src', 'src/memory', 'src/storage', 'src/store/bytes', 'src/store/pack'],
  },
  'adapters/filesystem': {
    owns: 'Blobs as plain files, records in LevelDB beside them.',
    mayImport: ['adapters/common', 'adapters/level', 'src/async', 'src/data-folder', 'src/storage'],
  },
  'src/client/serializer': {
    owns: 'Values to objects and back.',
    mayImport: ['src/client/common', 'src/client/download'],
  },
  'src/client/upload': {
    owns: 'Objects to requests.',
    mayImport: ['src/client/common', 'src/client/download', 'src/client/http', 'src/delta'],
  },
  'src/http': {
    owns: 'The router, the Node core and the fetch core, negotiation.',
    mayImport: [
      'src',
      'src/access',
      'src/async',
      'src/compression',
      'src/decode',
      'src/emit',
      'src/events',
      'src/inspect',
      'src/memory',
      'src/object',
    ],
  },
  'src/openapi': {
    owns: 'The OpenAPI document, composed of areas.',
    mayImport: ['src/openapi/description', 'src/openapi/objects'],
  },
  'src/operations': {
    owns: 'Upload, resolving deltas and reading an object, without a transport.',
    mayImport: ['src', 'src/decode', 'src/delta', 'src/events', 'src/inspect', 'src/memory', 'src/object'],
  },
  'src/store/closure': {
    owns: 'The walk from a root to everything below it.',
    mayImport: [
      'src',
      'src/async',
      'src/memory',
      'src/object',
      'src/storage',
      'src/store/bytes',
      'src/store/pack',
      'src/store/records',
    ],
  },
  'src/store/ingest': {
    owns: 'Batches to committed packs.',
    mayImport: [
      'src',
      'src/async',
      'src/compression',
      'src/memory',
      'src/object',
      'src/storage',
      'src/store/bytes',
      'src/store/pack',
      'src/store/records',
    ],
  },
  'src/streams': {
    owns: 'Node streams of objects and bytes; transforms for hosts.',
    mayImport: ['src', 'src/async', 'src/decode', 'src/inspect'],
  },
  'src/client': {
    owns: 'The client: `fetch` only, no Node types (except `level-cache.ts`).',
    mayImport: [
      'src',
      'src/client/common',
      'src/client/download',
      'src/client/http',
      'src/client/resources',
      'src/client/serializer',
      'src/client/upload',
    ],
  },
  'src/http/endpoints': {
    owns: 'One file for each endpoint.',
    mayImport: [
      'src',
      'src/compression',
      'src/decode',
      'src/emit',
      'src/http',
      'src/object',
      'src/openapi',
      'src/operations',
    ],
  },
  'src/mounts': { owns: 'Express, Koa and Fastify: thin, over `Mountable`.', mayImport: ['src/http'] },
  'src/pages/forms': { owns: 'Form bodies of pages.', mayImport: ['src', 'src/http', 'src/object'] },
  'src/store/delta': {
    owns: 'What changed between two versions.',
    mayImport: [
      'src',
      'src/delta',
      'src/memory',
      'src/object',
      'src/storage',
      'src/store/bytes',
      'src/store/closure',
      'src/store/pack',
      'src/store/records',
    ],
  },
  'src/store/plan': {
    owns: 'Plans: making, storing, reading and evicting them.',
    mayImport: [
      'src',
      'src/async',
      'src/compression',
      'src/memory',
      'src/object',
      'src/storage',
      'src/store/bytes',
      'src/store/closure',
      'src/store/pack',
      'src/store/records',
    ],
  },
  'src/automation/author': {
    owns: 'What the author of a function uses: the context, the function, run data.',
    mayImport: ['src/automation/author/inputs', 'src/client', 'src/client/common'],
  },
  'src/store/upkeep': {
    owns: 'Check, reindex, recovery and removal.',
    mayImport: [
      'src',
      'src/compression',
      'src/storage',
      'src/store/bytes',
      'src/store/ingest',
      'src/store/pack',
      'src/store/plan',
      'src/store/records',
    ],
  },
  'src/automation-server/schemas': {
    owns: 'Types of automation on the wire, generated from the shapes, and the rules for names, messages and pages.',
    mayImport: ['src', 'src/automation/author', 'src/automation/author/inputs', 'src/object'],
  },
  'src/automation/runtime': {
    owns: 'The seam where a run reports.',
    mayImport: ['src/automation/author', 'src/client'],
  },
  'src/cli/common': {
    owns: 'Options, output, signals and exit codes of the command; the one place that imports adapters.',
    mayImport: [
      'adapters/filesystem',
      'adapters/level',
      'adapters/memory',
      'src',
      'src/data-folder',
      'src/object',
      'src/storage',
      'src/store/upkeep',
    ],
  },
  'src/store': {
    owns: 'The pack store: puts ingest, reading and upkeep together.',
    mayImport: [
      'src',
      'src/async',
      'src/compression',
      'src/memory',
      'src/object',
      'src/storage',
      'src/store/bytes',
      'src/store/closure',
      'src/store/delta',
      'src/store/ingest',
      'src/store/pack',
      'src/store/plan',
      'src/store/records',
      'src/store/upkeep',
    ],
  },
  'src/automation-server/records': {
    owns: "Keys and values of automation's records.",
    mayImport: ['src', 'src/automation-server/schemas', 'src/storage'],
  },
  'src/automation/runtime/run': {
    owns: "One run in the function's process: context, marks, reports, secrets removed by value.",
    mayImport: [
      'src',
      'src/async',
      'src/automation/author',
      'src/automation/author/inputs',
      'src/automation/runtime',
      'src/client',
      'src/client/common',
      'src/object',
    ],
  },
  'src/cli/completion': {
    owns: 'Scripts that complete the command in bash, zsh and fish, made from its own tree.',
    mayImport: ['src/cli/common'],
  },
  'src/service': {
    owns: 'The service: options, status, storage, extensions, projects in process.',
    mayImport: [
      'src',
      'src/access',
      'src/async',
      'src/compression',
      'src/decode',
      'src/emit',
      'src/events',
      'src/http',
      'src/http/endpoints',
      'src/memory',
      'src/object',
      'src/openapi/description',
      'src/operations',
      'src/storage',
      'src/store',
      'src/store/plain',
      'src/streams',
    ],
  },
  'src/automation-server/domain': {
    owns: 'Decides: models, versions, automations, runs. One commit with an expectation for each change.',
    mayImport: [
      'src',
      'src/access',
      'src/async',
      'src/automation-server/records',
      'src/automation-server/schemas',
      'src/automation/author',
      'src/automation/author/inputs',
      'src/automation/runtime',
      'src/automation/runtime/run',
      'src/http',
      'src/object',
      'src/service',
      'src/storage',
    ],
  },
  'src/automation-server/schemas/shapes': {
    owns: 'Every wire shape of automation, described once: checks, OpenAPI schemas and types come from it.',
    mayImport: [
      'src/automation-server/schemas',
      'src/automation/author',
      'src/automation/author/inputs',
      'src/automation/runtime/run',
      'src/object',
      'src/openapi/description',
    ],
  },
  'src/automation/runtime/http': {
    owns: 'Reporting to a server over HTTP.',
    mayImport: [
      'src/automation/author',
      'src/automation/runtime',
      'src/automation/runtime/run',
      'src/client',
      'src/client/common',
      'src/client/http',
    ],
  },
  'src/automation/testing': {
    owns: '`testFunction`: a run without a server.',
    mayImport: [
      'adapters/memory',
      'src',
      'src/access',
      'src/automation/author',
      'src/automation/author/inputs',
      'src/automation/runtime',
      'src/automation/runtime/run',
      'src/client',
      'src/service',
    ],
  },
  'src/index.ts': {
    owns: 'The public names of `stowage`.',
    mayImport: [
      'src',
      'src/access',
      'src/events',
      'src/http',
      'src/inspect',
      'src/object',
      'src/operations',
      'src/service',
      'src/storage',
      'src/store/plain',
    ],
  },
  'src/metrics': {
    owns: 'Prometheus metrics, subscribed from outside.',
    mayImport: ['src/events', 'src/object', 'src/service'],
  },
  'src/automation-server/http': {
    owns: 'The resources under `/api/v1`.',
    mayImport: [
      'src',
      'src/access',
      'src/async',
      'src/automation-server/domain',
      'src/automation-server/schemas',
      'src/automation-server/schemas/shapes',
      'src/automation/author/inputs',
      'src/http',
      'src/inspect',
      'src/object',
      'src/openapi/description',
      'src/service',
    ],
  },
  'src/automation-server/runner': {
    owns: 'When and where runs execute: the queue, leases, the embedded backend.',
    mayImport: [
      'src',
      'src/async',
      'src/automation-server/domain',
      'src/automation-server/schemas/shapes',
      'src/automation/author',
      'src/automation/runtime',
      'src/automation/runtime/run',
      'src/client',
      'src/service',
    ],
  },
  'src/automation-server/runner/executors/isolation': {
    owns: 'Keeping commands apart from the server: sandboxes, process groups, and the ledger of processes.',
    mayImport: ['src/automation-server/domain', 'src/data-folder'],
  },
  'src/automation-server/schemas/openapi': {
    owns: 'The OpenAPI area of automation.',
    mayImport: [
      'src',
      'src/automation-server/schemas',
      'src/automation-server/schemas/shapes',
      'src/automation/author',
      'src/automation/author/inputs',
      'src/openapi/description',
      'src/openapi/objects',
    ],
  },
  'src/automation/runtime/command': {
    owns: "A function's file as a command.",
    mayImport: [
      'src',
      'src/automation/author',
      'src/automation/author/inputs',
      'src/automation/runtime',
      'src/automation/runtime/http',
      'src/automation/runtime/run',
      'src/client',
    ],
  },
  'src/automation': {
    owns: 'The public names of `stowage/automation`, for authors of functions.',
    mayImport: [
      'src/automation/author',
      'src/automation/author/inputs',
      'src/automation/runtime/command',
      'src/client',
      'src/client/common',
    ],
  },
  'src/automation/runtime/index.ts': {
    owns: 'The public names of `stowage/automation/runtime`.',
    mayImport: [
      'src/automation/author',
      'src/automation/author/inputs',
      'src/automation/runtime',
      'src/automation/runtime/command',
      'src/automation/runtime/http',
      'src/automation/runtime/run',
    ],
  },
  'src/automation-server/runner/executors': {
    owns: 'Functions in process or as commands.',
    mayImport: [
      'src',
      'src/automation-server/domain',
      'src/automation-server/runner/executors/isolation',
      'src/automation/author',
      'src/automation/runtime/run',
    ],
  },
  'src/automation-server/upkeep': {
    owns: 'Ends lost runs, sweeps and checks what automation stores.',
    mayImport: [
      'src/automation-server/domain',
      'src/automation-server/records',
      'src/automation-server/runner',
      'src/object',
      'src/storage',
      'src/store/upkeep',
    ],
  },
  'src/automation-server': {
    owns: 'The extension that puts automation together.',
    mayImport: [
      'src',
      'src/async',
      'src/automation-server/domain',
      'src/automation-server/http',
      'src/automation-server/runner',
      'src/automation-server/runner/executors',
      'src/automation-server/runner/executors/isolation',
      'src/automation-server/schemas',
      'src/automation-server/schemas/openapi',
      'src/automation-server/upkeep',
      'src/data-folder',
      'src/object',
      'src/service',
      'src/storage',
    ],
  },
  'src/cli/client': {
    owns: 'Files of objects, connections and progress for the commands of the client.',
    mayImport: [
      'src',
      'src/access',
      'src/automation-server',
      'src/cli/common',
      'src/client',
      'src/client/common',
      'src/client/http',
      'src/data-folder',
      'src/inspect',
      'src/object',
      'src/service',
    ],
  },
  'src/pages/views': {
    owns: 'Server-rendered TSX, one file for each page, and its assets.',
    mayImport: [
      'src',
      'src/automation-server',
      'src/automation-server/schemas',
      'src/automation/author',
      'src/automation/author/inputs',
      'src/http',
      'src/pages/forms',
    ],
  },
  'src/pages/server': {
    owns: 'Visits: who asks, sessions, where a form comes from, failures as pages.',
    mayImport: [
      'src',
      'src/access',
      'src/async',
      'src/automation-server',
      'src/automation-server/domain',
      'src/http',
      'src/object',
      'src/pages/views',
      'src/service',
    ],
  },
  'src/pages/handlers': {
    owns: 'What each page does.',
    mayImport: [
      'src',
      'src/access',
      'src/automation-server',
      'src/automation-server/domain',
      'src/automation-server/schemas',
      'src/automation/author',
      'src/automation/author/inputs',
      'src/http',
      'src/object',
      'src/pages/forms',
      'src/pages/server',
      'src/pages/views',
    ],
  },
  'src/pages': {
    owns: 'The extension that puts pages together.',
    mayImport: [
      'src',
      'src/access',
      'src/automation-server',
      'src/data-folder',
      'src/http',
      'src/pages/handlers',
      'src/pages/server',
      'src/pages/views',
      'src/service',
    ],
  },
  'src/cli/server': {
    owns: '`serve`: the HTTP server, functions and pages of the command.',
    mayImport: [
      'src',
      'src/access',
      'src/async',
      'src/automation-server',
      'src/automation-server/domain',
      'src/automation-server/runner/executors',
      'src/automation-server/runner/executors/isolation',
      'src/cli/common',
      'src/data-folder',
      'src/http',
      'src/metrics',
      'src/object',
      'src/pages',
      'src/service',
    ],
  },
  'src/cli/commands': {
    owns: 'One file for each command.',
    mayImport: [
      'src',
      'src/access',
      'src/automation-server',
      'src/automation-server/upkeep',
      'src/cli/client',
      'src/cli/common',
      'src/cli/completion',
      'src/cli/server',
      'src/client',
      'src/client/common',
      'src/client/upload',
      'src/data-folder',
      'src/object',
      'src/service',
      'src/storage',
      'src/store/upkeep',
    ],
  },
  'src/cli': { owns: 'The program and its entry.', mayImport: ['src/cli/commands', 'src/cli/common'] },
}

/** Where `ARCHITECTURE.md` shows the list. */
export const ROOMS_SECTION: RegExp = /(?<=<!-- rooms -->\n)[^]*(?=<!-- end of rooms -->)/

/** The list as Markdown. */
export function renderRooms(): string {
  const items = Object.entries(ROOMS).map(([folder, { owns, mayImport }]) => {
    const imports = mayImport.map((name) => `\`${name}\``).join(', ')
    return `- **\`${folder}\`**: ${owns} Imports ${imports === '' ? 'nothing' : imports}.`
  })
  return `\n${items.join('\n')}\n\n`
}
