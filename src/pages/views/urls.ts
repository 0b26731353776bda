import type { RunStatus } from '../../automation/author/run-data.ts'

/** Below the prefix. */
export const WEB = '/web'

export interface RunListFilter {
  readonly automationId?: string | undefined
  readonly modelId?: string | undefined
  readonly versionId?: string | undefined
  readonly status?: RunStatus | undefined
  readonly cursor?: string | undefined
}

export type ModelAction = 'delete' | 'restore'

/** Everything that an address may hold, but for the backslash, which browsers take for a slash. */
const PRINTABLE = /^[\x21-\x5b\x5d-\x7e]{1,4096}$/

type Query = Readonly<Record<string, string | undefined>>

/** The addresses of all pages, below their base in the browser: the mount point of the service, and its prefix. */
export class Urls {
  /** `''`, or as in `/models`. */
  readonly base: string

  constructor(base: string) {
    // Two slashes at the beginning of an address would name another host.
    this.base = base.replace(/^\/+/, '/')
  }

  /** The addresses as seen from a request, whose raw path is that of `resourcePath` below them. */
  static of(path: string, resourcePath: string): Urls {
    const segments = resourcePath.split('/').length - 1
    return new Urls(path.replace(/\/+$/, '').split('/').slice(0, -segments).join('/'))
  }

  get home(): string {
    return `${this.base}${WEB}`
  }

  get signIn(): string {
    return `${this.home}/sign-in`
  }

  get signOut(): string {
    return `${this.home}/sign-out`
  }

  asset(name: string): string {
    return `${this.home}/assets/${name}`
  }

  get openProject(): string {
    return `${this.home}/projects`
  }

  project(projectId: string, query: Query = {}): string {
    return `${this.openProject}/${encodeURIComponent(projectId)}${search(query)}`
  }

  model(projectId: string, modelId: string, query: Query = {}): string {
    return `${this.project(projectId)}/models/${encodeURIComponent(modelId)}${search(query)}`
  }

  modelUsage(projectId: string, modelId: string, query: Query = {}): string {
    return `${this.model(projectId, modelId)}/usage${search(query)}`
  }

  usage(projectId: string): string {
    return `${this.project(projectId)}/usage`
  }

  /** The page about collection; with an action, where its form goes. */
  collection(projectId: string, action: '' | 'restore' = ''): string {
    return `${this.project(projectId)}/collection${action === '' ? '' : `/${action}`}`
  }

  newPin(projectId: string): string {
    return `${this.project(projectId)}/pins`
  }

  pinAction(projectId: string, pinId: string, action: 'remove'): string {
    return `${this.newPin(projectId)}/${encodeURIComponent(pinId)}/${action}`
  }

  modelAction(projectId: string, modelId: string, action: ModelAction | 'retention'): string {
    return `${this.model(projectId, modelId)}/${action}`
  }

  versionAction(
    projectId: string,
    modelId: string,
    versionId: string,
    action: ModelAction | 'keep' | 'unkeep',
  ): string {
    return `${this.model(projectId, modelId)}/versions/${encodeURIComponent(versionId)}/${action}`
  }

  newAutomation(projectId: string, functionId: string, query: Query = {}): string {
    return `${this.project(projectId)}/functions/${encodeURIComponent(functionId)}/new${search(query)}`
  }

  automation(projectId: string, automationId: string, action: '' | 'edit' | 'run' | 'delete' = ''): string {
    return `${this.project(projectId)}/automations/${encodeURIComponent(automationId)}${action === '' ? '' : `/${action}`}`
  }

  runs(projectId: string, filter: RunListFilter = {}): string {
    return `${this.project(projectId)}/runs${search({ ...filter })}`
  }

  run(projectId: string, runId: string, query: Query = {}): string {
    return `${this.project(projectId)}/runs/${encodeURIComponent(runId)}${search(query)}`
  }

  runAction(projectId: string, runId: string, action: 'cancel' | 'rerun'): string {
    return `${this.run(projectId, runId)}/${action}`
  }

  logs(projectId: string, runId: string, query: Query = {}): string {
    return `${this.run(projectId, runId)}/logs${search(query)}`
  }

  /** The stream of a run's events, which the API serves. */
  events(projectId: string, runId: string): string {
    return `${this.base}/api/v1/projects/${encodeURIComponent(projectId)}/runs/${encodeURIComponent(runId)}/events`
  }

  artifact(projectId: string, artifactId: string): string {
    return `${this.base}/api/v1/projects/${encodeURIComponent(projectId)}/artifacts/${encodeURIComponent(artifactId)}`
  }

  /** Whether a text is the address of one of these pages, so that a browser may be sent there. */
  isPage(text: string): boolean {
    return (text === this.home || text.startsWith(`${this.home}/`)) && PRINTABLE.test(text)
  }
}

/** Whether deleted things are in a list too, as a part of its query. */
export function deletedQuery(isShown: boolean): { readonly deleted?: string } {
  return isShown ? { deleted: 'true' } : {}
}

function search(query: Query): string {
  const given = Object.entries(query).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
}
