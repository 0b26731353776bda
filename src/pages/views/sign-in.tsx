import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'

interface SignInProps {
  readonly frame: Frame
  /** Where to go once signed in. */
  readonly next: string
  readonly problem?: string | undefined
  /** Whether the browser came from another site, and so withheld the cookie. */
  readonly mayBeSignedIn?: boolean
}

const TOKEN_FIELD = 'token'

export function SignInPage({ frame, next, problem, mayBeSignedIn = false }: SignInProps): Html {
  const describedBy = problem === undefined ? 'token-hint' : 'token-hint token-error'
  return (
    <Page frame={frame} title="Sign in">
      <h1>Sign in</h1>
      {mayBeSignedIn ? (
        <p class="note">
          You came from another site. If you are signed in already, <a href={next}>go on to the page</a>.
        </p>
      ) : null}
      <form class="narrow" method="post" action={frame.urls.signIn} novalidate>
        <input type="hidden" name="next" value={next} />
        <div class={problem === undefined ? 'field' : 'field wrong'}>
          <label for={TOKEN_FIELD}>Token</label>
          <p class="hint" id="token-hint">
            Ask the operator of this service for a token. The command <code>stowage token</code> issues tokens.
          </p>
          {problem === undefined ? null : (
            <p class="complaint" id="token-error" role="alert">
              {problem}
            </p>
          )}
          <input
            id={TOKEN_FIELD}
            name={TOKEN_FIELD}
            type="password"
            required
            autocomplete="current-password"
            spellcheck={false}
            autofocus
            aria-describedby={describedBy}
            aria-invalid={problem === undefined ? undefined : 'true'}
          />
        </div>
        <button type="submit">Sign in</button>
      </form>
    </Page>
  )
}

/** The page of a one-use link. It requires the press of a button, so that link previews do not use it up. */
export function SignInLinkPage({ frame, code }: { readonly frame: Frame; readonly code: string }): Html {
  return (
    <Page frame={frame} title="Sign in">
      <h1>Sign in</h1>
      <p>This link works once, within five minutes after it was created.</p>
      <form method="post" action={frame.urls.signIn}>
        <input type="hidden" name="code" value={code} />
        <button type="submit" autofocus>
          Sign in
        </button>
      </form>
    </Page>
  )
}
