import { type Command, Option } from 'commander'
import { portNumber } from '../common/options.ts'

/** The options of `stowage serve` about the listener for health and metrics. `true` stands for the default port. */
export interface OperationsOptions {
  readonly health?: number | true
  readonly metrics?: number | true
  readonly metricsHost: string
}

export function addOperationsListener(command: Command): void {
  command
    .addOption(
      new Option(
        '--health [port]',
        'serve /healthz on a separate port too (9464), where clients cannot delay it',
      ).argParser(portNumber),
    )
    .addOption(
      new Option(
        '--metrics [port]',
        'serve Prometheus metrics at /metrics and /healthz on that listener (9464); needs the package prom-client',
      ).argParser(portNumber),
    )
    .addOption(
      new Option(
        '--metrics-host <address>',
        'the address for health and metrics; 0.0.0.0 for other machines too',
      ).default('127.0.0.1'),
    )
}

/** Ends the command for two ports: there is one listener. */
export function checkOperations({ health, metrics }: OperationsOptions, command: Command): void {
  if (typeof health === 'number' && typeof metrics === 'number' && health !== metrics)
    command.error(
      `--health ${health} and --metrics ${metrics} name two ports; health and metrics share one, so give it once`,
    )
}
