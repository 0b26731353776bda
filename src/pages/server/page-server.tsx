import type { Principal, AccessRight } from '../../access/access.ts'
import type { AutomationExtension } from '../../automation-server/automation.ts'
import { RunPrincipal } from '../../automation-server/domain/run-access.ts'
import { StowageError } from '../../errors.ts'
import type { ServiceContext } from '../../service/extension.ts'
import { errorAnswer, toStowageError } from '../../http/error-answer.ts'
import type { Answer, Exchange, Operation } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { checkProjectId } from '../../object/id.ts'
import type { Assets } from '../views/assets.ts'
import { isFromOwnPage, mayRead } from './origin.ts'
import { endSession, hasSession, type Sessions } from './session.ts'
import { Urls, WEB } from '../views/urls.ts'
import { ErrorPage } from '../views/error.tsx'
import type { Frame, Visitor } from '../views/layout.tsx'
import { SignInPage } from '../views/sign-in.tsx'
import { pageAnswer, type ProjectVisit, seeOther, type Visit } from './visit.ts'

export interface PageServerOptions<H> {
  readonly context: ServiceContext<H>
  readonly automation: AutomationExtension<H>
  readonly sessions: Sessions
  readonly assets: Assets
  /** The address of the service in browsers, such as `https://models.example`. */
  readonly origin: string | undefined
  /** The sign-in of servers with their own accounts. */
  readonly signInUrl: string | undefined
}

type Handler<V> = (visit: V) => Promise<Answer>

/** A request before authentication. */
export interface OpenVisit<H> {
  readonly exchange: Exchange<H>
  readonly urls: Urls
  readonly frame: Frame
}

interface Known {
  readonly principal: Principal
  readonly isSession: boolean
}

/** The parts that all pages have in common: authentication, authorization, links, and errors. */
export class PageServer<H> {
  readonly #options: PageServerOptions<H>

  constructor(options: PageServerOptions<H>) {
    this.#options = options
  }

  /** A page for everybody. */
  open(
    path: string,
    handlers: { readonly GET?: Handler<OpenVisit<H>>; readonly POST?: Handler<OpenVisit<H>> },
  ): Resource<H> {
    return this.#resource(path, handlers, (exchange, urls, handler) =>
      handler({ exchange, urls, frame: this.#frame(urls, undefined) }),
    )
  }

  /** A page for signed-in people. */
  signedIn(
    path: string,
    handlers: { readonly GET: Handler<Visit<H>>; readonly POST?: Handler<Visit<H>> },
  ): Resource<H> {
    return this.#resource(path, handlers, async (exchange, urls, handler) =>
      handler(this.#visit(exchange, urls, await this.#known(exchange))),
    )
  }

  /**
   * A page of a project. Viewing requires the right to read unless specified otherwise, sending a form the right to
   * write.
   */
  project(
    path: string,
    handlers: { readonly GET?: Handler<ProjectVisit<H>>; readonly POST?: Handler<ProjectVisit<H>> },
    getRight: AccessRight = 'read',
  ): Resource<H> {
    return this.#resource(`${WEB}/projects/:projectId${path}`, handlers, async (exchange, urls, handler) => {
      const { projectId } = exchange.params
      checkProjectId(projectId)
      const known = await this.#known(exchange)
      const { context, automation } = this.#options
      const may = async (right: AccessRight): Promise<boolean> => context.authorize(known.principal, projectId, right)
      const right = exchange.method === 'POST' ? 'write' : getRight
      if (!(await may(right)))
        throw new StowageError('forbidden', `you do not have the right to ${right} in this project`)
      return handler({
        ...this.#visit(exchange, urls, known),
        projectId,
        project: automation.project(projectId),
        mayWrite: right === 'write' || (await may('write')),
      })
    })
  }

  /** The principal of a token; `undefined` if there is none. */
  async principalOf(token: string, exchange: Exchange<H>): Promise<Principal | undefined> {
    const { method, path, host } = exchange
    const headers = new Headers(exchange.headers)
    headers.set('authorization', `Bearer ${token}`)
    return this.#options.context.authenticate({ headers, method, path, host })
  }

  #resource<V>(
    path: string,
    handlers: { readonly [M in 'GET' | 'POST']?: Handler<V> },
    call: (exchange: Exchange<H>, urls: Urls, handler: Handler<V>) => Promise<Answer>,
  ): Resource<H> {
    const operation =
      (handler: Handler<V>): Operation<H> =>
      async (exchange) => {
        const urls = Urls.of(exchange.path, path)
        try {
          this.#checkSource(exchange)
          return await call(exchange, urls, handler)
        } catch (thrown) {
          return this.#failed(exchange, urls, thrown)
        }
      }
    const given = Object.entries(handlers).map(([method, handler]) => [method, operation(handler)])
    return {
      path,
      operations: {
        GET: async (exchange: Exchange<H>) => seeOther(pageAbove(exchange, Urls.of(exchange.path, path))),
        ...Object.fromEntries(given),
      },
      slashAtEnd: true,
    }
  }

  #isFromOurs({ method, headers }: Exchange<H>): boolean {
    return method === 'POST' ? isFromOwnPage(headers, this.#options.origin) : mayRead(headers)
  }

  #checkSource(exchange: Exchange<H>): void {
    if (this.#isFromOurs(exchange)) return
    throw new StowageError(
      'forbidden',
      'the request comes from a page of another site, or the browser hides its origin',
    )
  }

  /** The host's own access first: if it knows the person, there is nothing to sign in to. */
  async #known(exchange: Exchange<H>): Promise<Known> {
    const { context, sessions } = this.#options
    const { headers, method, path, host } = exchange
    const principal = await context.authenticate({ headers, method, path, host })
    if (principal !== undefined) return { principal: noRun(principal), isSession: false }
    const token = await sessions.tokenOf(headers)
    const signedIn = token === undefined ? undefined : await this.principalOf(token, exchange)
    if (signedIn === undefined)
      throw new StowageError('unauthenticated', 'sign in to see this page', {
        headers: { 'WWW-Authenticate': 'Bearer realm="stowage"' },
      })
    return { principal: noRun(signedIn), isSession: true }
  }

  #visit(exchange: Exchange<H>, urls: Urls, known: Known): Visit<H> {
    const { context, automation } = this.#options
    return {
      exchange,
      urls,
      principal: known.principal,
      automation,
      context,
      frame: this.#frame(urls, visitorOf(known)),
    }
  }

  #frame(urls: Urls, visitor: Frame['visitor']): Frame {
    return { urls, assets: this.#options.assets.names, visitor }
  }

  /** Browsers get a page, all other clients the error of the API. */
  async #failed(exchange: Exchange<H>, urls: Urls, thrown: unknown): Promise<Answer> {
    const error = toStowageError(thrown)
    const { headers, requestId, signal } = exchange
    if (signal.aborted || headers.get('accept')?.includes('text/html') !== true) throw error
    if (error.statusCode >= 500)
      this.#options.context.logger?.error({ err: error, code: error.code, requestId }, error.message)
    const { 'Content-Type': _type, ...others } = errorAnswer(error).headers
    if (error.code !== 'unauthenticated') {
      const known = this.#isFromOurs(exchange) ? await this.#known(exchange).catch(() => undefined) : undefined
      const frame = this.#frame(urls, known === undefined ? undefined : visitorOf(known))
      return pageAnswer(<ErrorPage frame={frame} error={error} requestId={requestId} />, error.statusCode, others)
    }
    const { signInUrl } = this.#options
    const cleared = hasSession(headers) ? endSession(urls, headers) : undefined
    if (signInUrl !== undefined)
      return seeOther(
        withNext(signInUrl, wantedPage(exchange, urls)),
        cleared === undefined ? {} : { 'Set-Cookie': cleared },
      )
    const page = (
      <SignInPage
        frame={this.#frame(urls, undefined)}
        next={wantedPage(exchange, urls)}
        mayBeSignedIn={headers.get('sec-fetch-site') === 'cross-site'}
      />
    )
    return pageAnswer(page, error.statusCode, {
      ...others,
      ...(cleared === undefined ? {} : { 'Set-Cookie': cleared }),
    })
  }
}

function visitorOf({ principal: { subject }, isSession }: Known): Visitor {
  return { name: subject, canSignOut: isSession }
}

/** Throws `forbidden` for a run: pages are for people. */
function noRun(principal: Principal): Principal {
  if (principal instanceof RunPrincipal) throw new StowageError('forbidden', 'the token of a run does not open pages')
  return principal
}

/** The page with the form that a person requested directly, for example by reloading the response to it. */
function pageAbove({ path }: Pick<Exchange<unknown>, 'path'>, urls: Urls): string {
  const above = path.replace(/\/+$/, '').split('/').slice(0, -1).join('/')
  return urls.isPage(above) ? above : urls.home
}

/** The target after signing in: the page that required it. */
/** The address of the host's own sign-in, with the page to return to. */
function withNext(signInUrl: string, next: string): string {
  return `${signInUrl}${signInUrl.includes('?') ? '&' : '?'}next=${encodeURIComponent(next)}`
}

function wantedPage({ method, path, query }: Pick<Exchange<unknown>, 'method' | 'path' | 'query'>, urls: Urls): string {
  const wanted = `${path}${query.size === 0 ? '' : `?${query.toString()}`}`
  return method !== 'POST' && urls.isPage(wanted) ? wanted : urls.home
}
