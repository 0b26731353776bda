// @ts-check

/*
 * Brings the page of a run up to date: the server tells when something has happened, and the page is asked for again. Without this script the page
 * is loaded again as a whole every few seconds, and all else is the same.
 */

const PAUSE_MS = 400
const POLL_MS = 2_000
const EVENTS = ['status', 'progress', 'annotations', 'outputs', 'log']

const live = document.getElementById('live')
const address = live?.dataset.events
if (live !== null && address !== undefined) follow(live, address)

/**
 * @param {HTMLElement} live
 * @param {string} address of the stream of events
 */
function follow(live, address) {
  /** @type {EventSource | undefined} */
  let source
  /** @type {number | undefined} */
  let timer
  let isLoading = false
  let isStale = false

  const stop = () => {
    source?.close()
    source = undefined
    clearTimeout(timer)
    timer = undefined
  }

  /** @param {number} delayMs */
  const later = (delayMs) => {
    if (isLoading) isStale = true
    else timer ??= setTimeout(() => void update(), delayMs)
  }

  const update = async () => {
    timer = undefined
    isLoading = true
    const ended = await load(live).catch(() => false)
    isLoading = false
    if (ended) stop()
    else if (isStale) later(PAUSE_MS)
    else if (source === undefined && !document.hidden) later(POLL_MS)
    isStale = false
  }

  const start = () => {
    const opened = new EventSource(address)
    source = opened
    for (const name of EVENTS) opened.addEventListener(name, () => later(PAUSE_MS))
    opened.addEventListener('error', () => {
      if (opened.readyState === EventSource.CLOSED && source === opened) source = undefined
      later(POLL_MS)
    })
    later(PAUSE_MS)
  }

  document.addEventListener('visibilitychange', () => {
    if (live.dataset.events === undefined) return
    stop()
    if (!document.hidden) start()
  })
  addEventListener('pagehide', stop)
  start()
}

/**
 * Asks for the page again and takes over what has changed. Resolves to whether the run has ended.
 * @param {HTMLElement} live
 */
async function load(live) {
  const response = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store' })
  // Whoever is not signed in any more gets to see it.
  if (response.status === 401) location.reload()
  if (!response.ok) return false
  const next = new DOMParser().parseFromString(await response.text(), 'text/html')
  for (const part of live.querySelectorAll('[id^="live-"]')) {
    const fresh = next.getElementById(part.id)
    if (fresh !== null) replace(part, fresh)
  }
  document.title = next.title
  say(next.getElementById('live-state')?.dataset.say ?? '')
  const ended = next.getElementById('live')?.dataset.events === undefined
  if (ended) delete live.dataset.events
  return ended
}

/**
 * What is open stays open, what has the focus keeps it, and a log that stood at its end still does.
 * @param {Element} part
 * @param {Element} fresh
 */
function replace(part, fresh) {
  const open = new Set([...part.querySelectorAll('details[open]')].map(({ id }) => id))
  for (const details of fresh.querySelectorAll('details')) if (open.has(details.id)) details.open = true
  if (part.innerHTML === fresh.innerHTML) return
  const focused = part.contains(document.activeElement) ? document.activeElement?.id : undefined
  const log = part.querySelector('.log')
  const scrolled = log === null || log.scrollTop + log.clientHeight >= log.scrollHeight - 2 ? undefined : log.scrollTop
  part.replaceChildren(...fresh.childNodes)
  const newLog = part.querySelector('.log')
  newLog?.scrollTo({ top: scrolled ?? newLog.scrollHeight })
  if (focused === undefined) return
  const again = focused === '' ? null : document.getElementById(focused)
  const target = again ?? document.getElementById('content')
  target?.focus({ preventScroll: true })
}

/**
 * @param {string} text
 */
function say(text) {
  const said = document.getElementById('said')
  if (said !== null && said.textContent !== text) said.textContent = text
}
