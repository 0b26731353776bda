import pino from 'pino'
import { Registry } from 'prom-client'
import { expectAssignable, expectError, expectType } from 'tsd'
import {
  createObjectService,
  EVENT_CHANNELS,
  type Logger,
  openAccess,
  type ServiceEvent,
  type ServiceStatus,
} from 'stowage'
import { memoryBackend } from 'stowage/memory'
import { createMetrics, type Metrics } from 'stowage/metrics'

// Loggers as they are.
expectAssignable<Logger>(pino())
expectAssignable<Logger>(console)
expectAssignable<Logger>({ error: () => undefined })

const service = createObjectService({
  backend: memoryBackend(),
  access: openAccess(),
  name: 'models',
  logger: pino(),
  requestLog: 'debug',
  onEvent: (event) => {
    expectType<ServiceEvent>(event)
    if (event.type === 'upload') expectType<number>(event.created)
    if (event.type === 'differing') expectType<readonly string[]>(event.ids)
    expectError(event.objects)
  },
})
expectError(createObjectService({ backend: memoryBackend(), access: openAccess(), requestLog: 'warn' }))
expectType<() => void>(service.subscribe((event) => console.log(event.type)))
expectType<ServiceStatus>(service.status())
expectType<'stowage:upload'>(EVENT_CHANNELS.upload)

expectType<Metrics>(createMetrics({ registry: new Registry(), service }))
expectError(createMetrics({ service }))
