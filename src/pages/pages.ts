import type { Access, AccessRequest, Principal } from '../access/access.ts'
import type { AutomationExtension } from '../automation-server/automation.ts'
import type { Clock } from '../environment.ts'
import { StowageError } from '../errors.ts'
import type { ServiceContext, ServiceExtension } from '../service/extension.ts'
import { matchesPathEnd, type Resource } from '../http/router.ts'
import { Assets } from './views/assets.ts'
import { automationResources } from './handlers/automations.tsx'
import { keepingResources } from './handlers/keeping.tsx'
import { projectResources } from './handlers/project.tsx'
import { projectsResources } from './handlers/projects.tsx'
import { runResources } from './handlers/runs.tsx'
import { signInResources } from './handlers/sign-in.tsx'
import { mayRead } from './server/origin.ts'
import { PageServer } from './server/page-server.tsx'
import { Sessions } from './server/session.ts'
import { SignInCodes, type SignInCodeStore } from './server/sign-in-codes.ts'
import { WEB } from './views/urls.ts'

/** Options of `pages`. */
export interface PagesOptions<H = unknown> {
  /** Whose projects, automations and runs are shown. It belongs to the same service. */
  readonly automation: AutomationExtension<H>
  /**
   * Keys of 32 bytes that seal the cookies of people who are signed in: the first one seals, all of them open. By
   * default one that is new with every start, so that a restart signs everybody out; several processes behind one
   * address need the same ones. A function is called when the storage is opened, and again when a cookie is read and
   * the keys are older than half a second.
   */
  readonly sessionKeys?: readonly Uint8Array[] | (() => Promise<readonly Uint8Array[]>)
  /**
   * Where the codes of sign-in links wait until they are used. By default in this process: then a link works on the
   * server that made it. `storedSignInCodes` keeps them in records that several servers share.
   */
  readonly signInCodes?: SignInCodeStore
  /** How long a person stays signed in, in milliseconds, unless the token expires before. 12 hours by default. */
  readonly sessionMs?: number
  /**
   * The address of the service in browsers, such as `https://models.example`: needed only behind a proxy that changes
   * `Host`.
   */
  readonly origin?: string
  /**
   * The sign-in of a server with its own accounts: a path such as `/login`, or an address. People who are not signed in
   * are sent there, with the requested page in the parameter `next`. Without it they are asked for a token.
   */
  readonly signInUrl?: string
}

/** The person who signs in by a link. */
export interface SignInLinkOptions {
  /** The token of the person who opens the link. */
  readonly token: string
}

/** Pages for people on a service: pass it among its `extensions`, beside the automation that it shows. */
export interface PagesExtension<H = unknown> extends ServiceExtension<H> {
  /**
   * The path of a page that signs in once, within five minutes, with the service's prefix: such as
   * `/web/sign-in?code=...`. The host's mount point comes before it. Anybody with the path can sign in, so it is as
   * secret as the token. Throws `TypeError` before the pages belong to a service.
   */
  signInLink(options: SignInLinkOptions): Promise<string>
}

const SESSION_MS = 12 * 3_600_000
const SESSION_MS_MAX = 400 * 86_400_000
/** Paths of the API to which browsers cannot send an `Authorization` header: the cookie may authenticate there. */
const COOKIE_PATHS: readonly string[] = [
  '/api/v1/projects/:projectId/runs/:runId/events',
  '/api/v1/projects/:projectId/artifacts/:artifactId',
]
const PATH_SEGMENTS_MAX = 10

/** Throws `TypeError` and `RangeError` for options that cannot be. */
export function pages<H = unknown>(options: PagesOptions<H>): PagesExtension<H> {
  return new Pages<H>(options)
}

interface Attached<H> {
  readonly context: ServiceContext<H>
  readonly codes: SignInCodes
  readonly sessions: Sessions
}

class Pages<H> implements PagesExtension<H> {
  readonly #options: PagesOptions<H>
  readonly #assets = new Assets()
  #attached: Attached<H> | undefined

  constructor(options: PagesOptions<H>) {
    this.#options = options
    const { origin, signInUrl, sessionMs = SESSION_MS } = options
    if (signInUrl !== undefined && !/^(?:https?:\/\/[^/]|\/(?!\/))\S*$/.test(signInUrl))
      throw new TypeError(
        `signInUrl is ${JSON.stringify(signInUrl)}; it must be a path such as "/login", or an address that begins with https://`,
      )
    if (origin !== undefined && (!URL.canParse(origin) || new URL(origin).origin !== origin))
      throw new TypeError(`origin is ${JSON.stringify(origin)}; it must be one, such as "https://models.example"`)
    if (!Number.isSafeInteger(sessionMs) || sessionMs < 1_000 || sessionMs > SESSION_MS_MAX)
      throw new RangeError(`sessionMs is ${sessionMs}; it must be an integer from 1000 to ${SESSION_MS_MAX}`)
    this.#sessions(Date)
  }

  attach(context: ServiceContext<H>): readonly Resource<H>[] {
    if (this.#attached !== undefined)
      throw new TypeError('these pages already belong to a service; create pages for each service')
    const codes = new SignInCodes(context.clock, this.#options.signInCodes)
    const sessions = this.#sessions(context.clock)
    this.#attached = { context, codes, sessions }
    const { automation, origin, signInUrl } = this.#options
    const server = new PageServer<H>({ context, automation, sessions, assets: this.#assets, origin, signInUrl })
    return [
      ...signInResources({ server, sessions, codes }),
      this.#assetResource(),
      ...projectsResources(server),
      ...projectResources(server),
      ...keepingResources(server),
      ...automationResources(server),
      ...runResources(server),
      ...nothing(server),
    ]
  }

  async open(): Promise<void> {
    await this.#attached?.sessions.open()
  }

  /** The cookie authenticates on the few paths of the API that browsers open on their own. */
  access(inner: Access<H>): Access<H> {
    const authenticate = async (request: AccessRequest<H>): Promise<Principal | undefined> => {
      const { headers, method, path } = request
      const takesCookie =
        (method === 'GET' || method === 'HEAD') &&
        !headers.has('authorization') &&
        COOKIE_PATHS.some((one) => matchesPathEnd(path, one)) &&
        mayRead(headers)
      const token = takesCookie ? await this.#attached?.sessions.tokenOf(headers) : undefined
      if (token === undefined) return inner.authenticate(request)
      const translated = new Headers(headers)
      translated.set('authorization', `Bearer ${token}`)
      return inner.authenticate({ ...request, headers: translated })
    }
    return {
      ...(inner.refusals === undefined ? {} : { refusals: inner.refusals }),
      authenticate,
      authorize: (principal, projectId, right) => inner.authorize(principal, projectId, right),
    }
  }

  async signInLink({ token }: SignInLinkOptions): Promise<string> {
    if (this.#attached === undefined)
      throw new TypeError('these pages have no service yet; pass them to createObjectService in extensions')
    const { context, codes } = this.#attached
    return `${context.prefix}${WEB}/sign-in?code=${await codes.issue(token)}`
  }

  #sessions(clock: Clock): Sessions {
    const { sessionKeys, sessionMs = SESSION_MS } = this.#options
    return new Sessions({ keys: sessionKeys, sessionMs, clock })
  }

  #assetResource(): Resource<H> {
    return {
      path: `${WEB}/assets/:name`,
      operations: {
        GET: async ({ params }) => {
          const answer = this.#assets.answer(params.name)
          if (answer === undefined) throw new StowageError('route_not_found', 'there is nothing at this path')
          return answer
        },
      },
    }
  }
}

/** Every other path below the pages' own: a missing page is a page, too. */
function nothing<H>(server: PageServer<H>): readonly Resource<H>[] {
  const absent = (): Promise<never> =>
    Promise.reject(new StowageError('route_not_found', 'there is no page at this address'))
  return Array.from({ length: PATH_SEGMENTS_MAX }, (_, at) =>
    server.open(`${WEB}${Array.from({ length: at + 1 }, (_segment, number) => `/:s${number}`).join('')}`, {
      GET: absent,
      POST: absent,
    }),
  )
}
