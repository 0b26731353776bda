import type { Principal } from '../../access/access.ts'
import type { AutomationExtension } from '../../automation-server/automation.ts'
import type { AutomationProject } from '../../automation-server/automation-project.ts'
import type { ServiceContext } from '../../service/extension.ts'
import type { Answer, Exchange } from '../../http/exchange.ts'
import type { Urls } from '../views/urls.ts'
import { documentOf, type Html } from '../views/html.ts'
import type { Frame } from '../views/layout.tsx'

/** A request for a page, from a person with the right to see it. */
export interface Visit<H> {
  readonly exchange: Exchange<H>
  readonly frame: Frame
  readonly urls: Urls
  readonly principal: Principal
  readonly automation: AutomationExtension<H>
  readonly context: ServiceContext<H>
}

/** A request for a page of one project. */
export interface ProjectVisit<H> extends Visit<H> {
  readonly projectId: string
  readonly project: AutomationProject
  readonly mayWrite: boolean
}

/** Nothing but our own script, stylesheet and forms, whatever ends up in a page (https://www.w3.org/TR/CSP3). */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

/**
 * Our own forms must reveal their origin, so the referrer stays within the origin instead of being omitted: that would
 * empty `Origin` too.
 */
const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': POLICY,
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

export function pageAnswer(page: Html, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { ...PAGE_HEADERS, ...headers }, body: documentOf(page) }
}

/**
 * After a form: the browser gets the page with a request of its own, which can be repeated (RFC 9110 section 15.4.4).
 */
export function seeOther(location: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return {
    status: 303,
    headers: { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'same-origin', ...headers },
  }
}
