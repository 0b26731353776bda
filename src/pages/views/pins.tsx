import type { Pin, RootUsage } from '../../object/roots.ts'
import type { Html } from './html.ts'
import { Field } from './field.tsx'
import { Empty, formatBytes, formatCount, Time } from './parts.tsx'
import type { Urls } from './urls.ts'

/** A pin as somebody entered it. */
export interface PinValues {
  readonly rootObjectId: string
  readonly name: string
  readonly reason: string
  /** As typed. */
  readonly days: string
}

/** A pin that was refused, as it was entered. */
export interface RefusedPin {
  readonly values: PinValues
  readonly problem: string
}

interface PinsProps {
  readonly urls: Urls
  readonly projectId: string
  readonly pins: readonly Pin[]
  readonly roots: readonly RootUsage[]
  readonly refused: RefusedPin | undefined
  readonly mayWrite: boolean
}

const NEW_PIN: PinValues = { rootObjectId: '', name: '', reason: '', days: '' }

/** The pins of a project, and the form for a new one. */
export function Pins(props: PinsProps): Html {
  const { pins, roots, mayWrite } = props
  const usages = new Map(roots.map((root) => [root.id, root]))
  return (
    <section aria-labelledby="pins">
      <h2 id="pins">Pins</h2>
      <p class="quiet">A pin keeps an object and everything below it, even if no version refers to it.</p>
      {pins.length === 0 ? (
        <Empty>There is no pin yet.</Empty>
      ) : (
        <ul class="rows">
          {pins.map((pin) => (
            <PinRow {...props} pin={pin} usage={usages.get(pin.id)} />
          ))}
        </ul>
      )}
      {mayWrite ? <NewPin {...props} /> : null}
    </section>
  )
}

function PinRow({
  urls,
  projectId,
  mayWrite,
  pin: { id, name, reason, rootObjectId, endsAt },
  usage,
}: PinsProps & { readonly pin: Pin; readonly usage: RootUsage | undefined }): Html {
  return (
    <li>
      <span class="main">{name === null ? <code>{rootObjectId}</code> : <bdi>{name}</bdi>}</span>
      <span class="quiet">
        {endsAt === null ? (
          'No end'
        ) : (
          <>
            Until <Time at={endsAt} />
          </>
        )}
      </span>
      <span class="detail">
        {reason === null ? null : (
          <>
            <bdi>{reason}</bdi>
            <br />
          </>
        )}
        Root object{' '}
        <code>
          <bdi>{rootObjectId}</bdi>
        </code>
        {usage === undefined
          ? null
          : `: ${formatCount(usage.objects, 'object')}, ${formatBytes(usage.jsonBytes)}; only here: ${formatCount(usage.ownObjects, 'object')}, ${formatBytes(usage.ownJsonBytes)}.`}
      </span>
      {mayWrite ? (
        <details class="confirm">
          <summary>
            Remove …<span class="hidden">: {name ?? rootObjectId}</span>
          </summary>
          <form method="post" action={urls.pinAction(projectId, id, 'remove')}>
            <p>A collection may then free its objects, unless a version or another pin refers to them.</p>
            <button type="submit" class="danger">
              Remove this pin
            </button>
          </form>
        </details>
      ) : null}
    </li>
  )
}

function NewPin({ urls, projectId, refused }: PinsProps): Html {
  const { values = NEW_PIN, problem } = refused ?? {}
  return (
    <details class="confirm" open={refused !== undefined}>
      <summary>Add a pin …</summary>
      <form method="post" action={urls.newPin(projectId)} class="narrow">
        <Field id="root" label="Root object" required hints={['The id of the object to keep.']} problem={problem}>
          {(aria) => (
            <input
              id="root"
              name="rootObjectId"
              type="text"
              autocomplete="off"
              spellcheck={false}
              required
              value={values.rootObjectId}
              {...aria}
            />
          )}
        </Field>
        <Field id="name" label="Name">
          {(aria) => <input id="name" name="name" type="text" autocomplete="off" value={values.name} {...aria} />}
        </Field>
        <Field id="reason" label="Reason">
          {(aria) => <input id="reason" name="reason" type="text" autocomplete="off" value={values.reason} {...aria} />}
        </Field>
        <Field
          id="days"
          label="Days"
          hints={[
            'The number of days for which the pin keeps the object. Leave this empty to keep it until somebody removes the pin.',
          ]}
        >
          {(aria) => (
            <input
              id="days"
              name="days"
              type="text"
              inputmode="numeric"
              autocomplete="off"
              value={values.days}
              {...aria}
            />
          )}
        </Field>
        <button type="submit">Add the pin</button>
      </form>
    </details>
  )
}
