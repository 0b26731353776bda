import type { AssetNames } from './assets.ts'
import type { Urls } from './urls.ts'
import { type Child, cut, type Html, isolated } from './html.ts'

/** The parts around every page. */
export interface Frame {
  readonly urls: Urls
  readonly assets: AssetNames
  readonly visitor: Visitor | undefined
}

export interface Visitor {
  /** `''` if unknown. */
  readonly name: string
  /** Whether our own cookie identifies the visitor. */
  readonly canSignOut: boolean
}

export interface Crumb {
  readonly text: string
  readonly href: string
}

interface PageProps {
  readonly frame: Frame
  readonly title: string
  readonly crumbs?: readonly Crumb[]
  /** Keeps the page up to date while it is open. */
  readonly live?: { readonly refreshSeconds: number } | undefined
  readonly children?: Child
}

const TITLE_CHARACTERS_MAX = 100

/** A whole page: landmarks, a way to skip to the content, and one heading of the first level, which the page brings. */
export function Page({ frame, title, crumbs = [], live, children }: PageProps): Html {
  const { urls, assets } = frame
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${isolated(cut(title, TITLE_CHARACTERS_MAX))} – Stowage`}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={urls.asset(assets.style)} />
        {live === undefined ? null : <script type="module" src={urls.asset(assets.script)} />}
        {live === undefined || live.refreshSeconds === 0 ? null : (
          <noscript>
            <meta http-equiv="refresh" content={String(live.refreshSeconds)} />
          </noscript>
        )}
      </head>
      <body>
        <a class="skip" href="#content">
          Skip to the content
        </a>
        <Top frame={frame} />
        {crumbs.length === 0 ? null : <Crumbs crumbs={crumbs} />}
        <main id="content" tabindex={-1}>
          {children}
        </main>
      </body>
    </html>
  )
}

function Top({ frame: { urls, visitor } }: { readonly frame: Frame }): Html {
  return (
    <header class="top">
      <a class="brand" href={urls.home}>
        Stowage
      </a>
      {visitor === undefined ? null : (
        <div class="person">
          {visitor.name === '' ? null : (
            <span class="quiet">
              <bdi>{cut(visitor.name, TITLE_CHARACTERS_MAX)}</bdi>
            </span>
          )}
          {visitor.canSignOut ? (
            <form method="post" action={urls.signOut}>
              <button class="plain" type="submit">
                Sign out
              </button>
            </form>
          ) : null}
        </div>
      )}
    </header>
  )
}

function Crumbs({ crumbs }: { readonly crumbs: readonly Crumb[] }): Html {
  return (
    <nav class="crumbs" aria-label="Where you are">
      <ol>
        {crumbs.map(({ text, href }) => (
          <li>
            <a href={href}>
              <bdi>{cut(text, TITLE_CHARACTERS_MAX)}</bdi>
            </a>
          </li>
        ))}
      </ol>
    </nav>
  )
}
