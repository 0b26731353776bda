import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import type { LogLevel, LogLine } from '../../../automation/author/run-data.ts'
import { SecretRedactor } from '../../../automation/runtime/run/secret-redactor.ts'
import { withRetries } from '../../../automation/runtime/run/retry.ts'
import type { Clock } from '../../../environment.ts'

export interface OutputLogOptions {
  /** Bytes of the output that are kept. The rest is read at leisure and dropped, but for the end. */
  readonly outputBytesMax: number
  readonly secretTexts: readonly string[]
  readonly addLogs: (lines: readonly LogLine[]) => Promise<void>
  readonly clock: Clock
}

const LINE_LENGTH_MAX = 8_000
const FLUSH_MS = 250
/** The process is held back while more than this waits to be stored. */
const HELD_BACK_LENGTH = 65_536
const LAST_LINES = 10
const LAST_LINES_LENGTH = 1_500
const STORE_TRIES = 3
/** A line of a stack trace. */
const FRAME = /^\s+at /
/**
 * The pause between two reads of dropped output. A process that prints without end is held back, and does not block
 * this one.
 */
const DROP_PAUSE_MS = 5
/**
 * The longest spelling of a UTF-16 unit that the redactor knows: nine characters, for three bytes that are
 * percent-encoded.
 */
const CHARACTER_LENGTH_MAX = 9

/**
 * The output of a process as lines of its run's log: without secrets, bounded, and with backpressure when the log
 * cannot keep up.
 */
export class OutputLog {
  readonly #options: OutputLogOptions
  readonly #redactor: SecretRedactor
  /**
   * No spelling of a secret is longer: so much is taken off the end of a line that was cut, since it may be a part of
   * one.
   */
  readonly #spellingLengthMax: number
  readonly #last: string[] = []
  #bytes = 0
  #waiting: LogLine[] = []
  #waitingLength = 0
  #timer: NodeJS.Timeout | undefined
  #storing: Promise<void> = Promise.resolve()

  constructor(options: OutputLogOptions) {
    const secrets = options.secretTexts.flatMap((text) => [text, ...text.split(/\r?\n/)])
    this.#options = options
    this.#redactor = new SecretRedactor(secrets)
    this.#spellingLengthMax = CHARACTER_LENGTH_MAX * Math.max(0, ...secrets.map(({ length }) => length))
  }

  /** Resolves when the stream has ended, however it did. */
  async read(stream: Readable, level: LogLevel): Promise<void> {
    let line = ''
    let tail: string | undefined
    stream.setEncoding('utf8')
    try {
      for await (const chunk of stream as AsyncIterable<string>) {
        if (this.#bytes > this.#options.outputBytesMax) {
          tail = `${tail ?? ''}${chunk}`.slice(-this.#tailLengthMax)
          await wait(DROP_PAUSE_MS)
          continue
        }
        line = this.#addLines(level, line, chunk)
        this.#count(chunk)
        if (this.#waitingLength > HELD_BACK_LENGTH) await this.#flush()
      }
    } catch (error) {
      // A pipe that was torn down is an end like any other.
      if ((error as NodeJS.ErrnoException).code === undefined) throw error
    }
    // The end of the dropped output begins in the middle of a line, perhaps in the middle of a secret. That line is
    // omitted, even if it is the only one.
    if (tail !== undefined)
      line = tail.includes('\n') ? this.#addLines(level, '', tail.slice(tail.indexOf('\n') + 1)) : ''
    if (line !== '') this.#add(level, line)
  }

  /** Stores the waiting lines. */
  async finish(): Promise<void> {
    await this.#flush()
  }

  /** The end of the output, for a message; empty if there is none. */
  get lastLines(): string {
    return this.#last.join('\n').slice(-LAST_LINES_LENGTH)
  }

  get #readLengthMax(): number {
    return LINE_LENGTH_MAX + this.#spellingLengthMax
  }

  get #tailLengthMax(): number {
    return this.#readLengthMax * 2
  }

  /** Gives the line that has begun. */
  #addLines(level: LogLevel, begun: string, text: string): string {
    const [first, ...others] = text.split('\n')
    let line = this.#begun(begun, first)
    for (const next of others) {
      this.#add(level, line)
      line = this.#begun('', next)
    }
    return line
  }

  #begun(line: string, more: string): string {
    const lengthMax = this.#readLengthMax
    return line.length >= lengthMax ? line : (line + more).slice(0, lengthMax)
  }

  #count(chunk: string): void {
    const { outputBytesMax } = this.#options
    const before = this.#bytes
    this.#bytes += Buffer.byteLength(chunk)
    if (before <= outputBytesMax && this.#bytes > outputBytesMax)
      this.#wait('warn', `the process prints more than ${outputBytesMax} bytes: the rest of its output is left out`)
  }

  #add(level: LogLevel, line: string): void {
    const redacted = this.#redactor.text(stripVTControlCharacters(line).trimEnd())
    const sureLength =
      line.length < this.#readLengthMax ? redacted.length : Math.max(0, redacted.length - this.#spellingLengthMax)
    const text = redacted.slice(0, Math.min(sureLength, LINE_LENGTH_MAX))
    if (text === '') return
    // Only the first line of a stack, so that the rest of the stack does not push out the error.
    if (!FRAME.test(text) || !FRAME.test(this.#last.at(-1) ?? '')) this.#last.push(text)
    if (this.#last.length > LAST_LINES) this.#last.shift()
    if (this.#bytes <= this.#options.outputBytesMax) this.#wait(level, text)
  }

  #wait(level: LogLevel, message: string): void {
    this.#waiting.push({ atMs: this.#options.clock.now(), level, message })
    this.#waitingLength += message.length
    this.#timer ??= setTimeout(() => void this.#flush(), FLUSH_MS)
  }

  /** In order. Lines that the storage does not accept are lost, and the run continues. */
  #flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#storing = this.#storing.then(() => this.#store()).catch(() => undefined)
    return this.#storing
  }

  async #store(): Promise<void> {
    const lines = this.#waiting
    if (lines.length === 0) return
    this.#waiting = []
    this.#waitingLength = 0
    await withRetries(() => this.#options.addLogs(lines), new AbortController().signal, { attemptsMax: STORE_TRIES })
  }
}
