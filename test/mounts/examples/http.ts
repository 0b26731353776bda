import { createServer, type Server } from 'node:http'
import { continueOnExpect, createObjectService, jwtAccess, type ObjectService } from 'stowage'
import { filesystemBackend } from 'stowage/filesystem'

/** Plain `http`: Stowage answers below `/models`, the host everything else. */
export const service: ObjectService = createObjectService({
  backend: filesystemBackend({ path: process.env.DATA ?? 'data' }),
  access: jwtAccess({
    keys: Buffer.from(process.env.TOKEN_KEY ?? '', 'hex'),
    issuer: 'https://accounts.example',
    audience: 'models',
    algorithms: ['HS256'],
  }),
  prefix: '/models',
})
await service.ready()

export const server: Server = createServer((req, res) => {
  service.node(req, res, () => {
    res.writeHead(404).end('nothing here')
  })
})
continueOnExpect(server, service)
server.listen(Number(process.env.PORT ?? 3000))
