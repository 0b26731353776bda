import type { StowageError } from '../../errors.ts'
import type { Html } from './html.ts'
import { type Frame, Page } from './layout.tsx'

const HEADINGS: Readonly<Record<number, string>> = {
  400: 'This cannot be done',
  403: 'You do not have permission',
  404: 'There is nothing here',
  405: 'This cannot be done',
  409: 'This cannot be done now',
  413: 'This is too much',
  415: 'This cannot be read',
  503: 'Try again in a moment',
}

export function ErrorPage({
  frame,
  error,
  requestId,
}: {
  readonly frame: Frame
  readonly error: StowageError
  readonly requestId: string
}): Html {
  const title = HEADINGS[error.statusCode] ?? 'Something went wrong'
  return (
    <Page frame={frame} title={title}>
      <h1>{title}</h1>
      <p>{`${error.message.slice(0, 1).toUpperCase()}${error.message.slice(1)}.`}</p>
      <p class="quiet">
        {`Status ${error.statusCode}, ${error.code}, request `}
        <code>{requestId}</code>
      </p>
      <p>
        <a href={frame.urls.home}>All projects</a>
      </p>
    </Page>
  )
}
