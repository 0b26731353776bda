import { once } from 'node:events'
import { createServer } from 'node:http'
import { filesystemBackend } from '../../adapters/filesystem/index.ts'
import { archives } from '../../src/archive/index.ts'
import { automation } from '../../src/automation-server/index.ts'
import { tuneHeap } from '../../src/cli/server/heap.ts'
import { createObjectService, openAccess } from '../../src/index.ts'
import { dyingBackend } from './dying-backend.ts'
import { answerCommands } from './server-commands.ts'
import { epochHand } from './epoch-hand.ts'

/**
 * A server that tests may kill at any moment: `<folder> <port> <page bytes>`. Says when it listens. Processes start with
 * `start-archive-server.ts`.
 */
const [path, port, pageBytes] = process.argv.slice(2)
// As `stowage serve` does, once its modules are loaded.
tuneHeap()
const { backend, dieAfter } = dyingBackend(filesystemBackend({ path }))
const epochs = epochHand()
const service = createObjectService({
  backend,
  access: openAccess(),
  extensions: [automation(), archives({ pageBytes: Number(pageBytes) }), epochs.extension],
})
await service.ready()
const server = createServer((req, res) => service.node(req, res))
server.listen(Number(port), '127.0.0.1')
await once(server, 'listening')
answerCommands(service, { dieAfter, advanceEpochs: epochs.advance })
process.send?.('listening')
// Ends with whoever started it.
process.on('disconnect', () => process.exit())
