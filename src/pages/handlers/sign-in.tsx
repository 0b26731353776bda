import { StowageError } from '../../errors.ts'
import type { Answer } from '../../http/exchange.ts'
import type { Resource } from '../../http/router.ts'
import { RunPrincipal } from '../../automation-server/domain/run-access.ts'
import { TOKEN_BYTES_MAX } from '../../access/bearer.ts'
import { type FormEntries, readForm } from '../forms/form-body.ts'
import { isSecure } from '../server/origin.ts'
import type { OpenVisit, PageServer } from '../server/page-server.tsx'
import { endSession, type Sessions } from '../server/session.ts'
import type { SignInCodes } from '../server/sign-in-codes.ts'
import { WEB } from '../views/urls.ts'
import { SignInLinkPage, SignInPage } from '../views/sign-in.tsx'
import { pageAnswer, seeOther } from '../server/visit.ts'

interface SignInParts<H> {
  readonly server: PageServer<H>
  readonly sessions: Sessions
  readonly codes: SignInCodes
}

const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/

/** Signing in with a token or a one-use link, and signing out. */
export function signInResources<H>(parts: SignInParts<H>): readonly Resource<H>[] {
  const { server } = parts
  return [
    server.open(`${WEB}/sign-in`, {
      GET: async ({ frame, urls, exchange: { query } }) => {
        const code = query.get('code')
        if (code !== null) return pageAnswer(<SignInLinkPage frame={frame} code={code} />)
        return pageAnswer(<SignInPage frame={frame} next={urls.home} />)
      },
      POST: (visit) => signIn(parts, visit),
    }),
    server.open(`${WEB}/sign-out`, {
      POST: async ({ urls, exchange: { headers } }) => {
        const ended = endSession(urls, headers)
        return seeOther(urls.signIn, ended === undefined ? {} : { 'Set-Cookie': ended, 'Clear-Site-Data': '"cache"' })
      },
    }),
  ]
}

async function signIn<H>(parts: SignInParts<H>, { exchange, urls, frame }: OpenVisit<H>): Promise<Answer> {
  const entries = await readForm(exchange)
  const wanted = entries.get('next') ?? ''
  const next = urls.isPage(wanted) ? wanted : urls.home
  try {
    const token = await tokenOf(parts.codes, entries)
    await checkPerson(parts.server, token, exchange)
    const cookie = await parts.sessions.begin(token, { base: urls.base, secure: isSecure(exchange.headers) })
    return seeOther(next, { 'Set-Cookie': cookie })
  } catch (error) {
    if (!(error instanceof StowageError) || error.statusCode >= 500) throw error
    const problem = `${error.message.slice(0, 1).toUpperCase()}${error.message.slice(1)}.`
    return pageAnswer(<SignInPage frame={frame} next={next} problem={problem} />, 422)
  }
}

/** Throws `invalid_request` if there is none. */
async function tokenOf(codes: SignInCodes, entries: FormEntries): Promise<string> {
  const code = entries.get('code')
  if (code !== undefined) {
    const token = await codes.redeem(code)
    if (token === undefined)
      throw new StowageError(
        'invalid_request',
        'this link was used already, or is older than five minutes; get another one, or paste a token',
      )
    return token
  }
  const token = (entries.get('token') ?? '').trim().replace(/^bearer +/i, '')
  if (token === '') throw new StowageError('invalid_request', 'paste a token to sign in')
  if (token.length > TOKEN_BYTES_MAX || !TOKEN.test(token))
    throw new StowageError('invalid_request', 'this is not a token; paste all of it, and nothing else')
  return token
}

/** Throws `unauthenticated` for a token without a principal, and `forbidden` for that of a run. */
async function checkPerson<H>(server: PageServer<H>, token: string, exchange: OpenVisit<H>['exchange']): Promise<void> {
  const principal = await server.principalOf(token, exchange)
  if (principal === undefined)
    throw new StowageError('unauthenticated', 'this token is not valid here, or not any more')
  if (principal instanceof RunPrincipal)
    throw new StowageError('forbidden', 'this is the token of a run; pages are for people')
}
