import { createServer, type Server } from 'node:http'
import express from 'express'
import { createObjectService, type ObjectService } from 'stowage'
import { filesystemBackend } from 'stowage/filesystem'
import { account } from './accounts.ts'

/** A host with a router of its own: the endpoints by themselves, on paths and below rules that the host chooses. */
export const service: ObjectService = createObjectService({
  backend: filesystemBackend({ path: process.env.DATA ?? 'data' }),
  access: {
    authenticate: ({ headers }) => account(headers.get('authorization') ?? ''),
    authorize: (_who, projectId, right) => projectId === 'demo' || right === 'read',
  },
})

const { upload, graph } = service.endpoints
const app = express()
app.post('/projects/:projectId/versions', (req, res, next) => upload.node(req, res, req.params, next))
app.get('/projects/:projectId/versions/:objectId', (req, res, next) => graph.node(req, res, req.params, next))

export const server: Server = createServer(app).listen(Number(process.env.PORT ?? 3000))
