import type { JSX } from 'hono/jsx/jsx-runtime'

export type { Child } from 'hono/jsx'

export type Html = JSX.Element
type HtmlText = { toString(): string }

/**
 * First strong isolate and its end (UAX #9): foreign text does not change the direction of the text around it, in
 * places where `bdi` is not allowed.
 */
const ISOLATE = '\u2068'
const END_ISOLATE = '\u2069'

export function isolated(text: string): string {
  return `${ISOLATE}${text}${END_ISOLATE}`
}

/** Whole characters, as many as there is room for. */
export function cut(text: string, charactersMax: number): string {
  return text.length <= charactersMax ? text : `${text.slice(0, charactersMax).replace(/\p{Surrogate}$/u, '')}…`
}

/** A page as a browser gets it. No part of ours is asynchronous, so it is a text at once. */
export function documentOf(page: Html): Uint8Array {
  return Buffer.from(`<!DOCTYPE html>${(page as HtmlText).toString()}`)
}
