import { quoted } from '../../object/id.ts'
import type { Finding } from '../../store/upkeep/finding.ts'
import { EXIT, FindingsError } from './exit.ts'
import { formatCount } from './format.ts'
import { printJson, printLine } from './output.ts'

/**
 * Prints findings as they come and a summary in the end. Throws `FindingsError` if there was damage, so that scripts
 * see it in the exit code.
 */
export async function printFindings(findings: AsyncIterable<Finding>, json: boolean): Promise<void> {
  const counts = { damage: 0, notes: 0 }
  for await (const finding of findings) {
    if (finding.severity === 'damage') counts.damage++
    else counts.notes++
    if (json) printJson(finding)
    else printLine(lineOf(finding))
  }
  if (json) printJson({ summary: counts })
  else
    printLine(
      counts.damage === 0
        ? `no damage (${formatCount(counts.notes, 'note')})`
        : `${formatCount(counts.damage, 'finding')} of damage (and ${formatCount(counts.notes, 'note')})`,
    )
  if (counts.damage > 0) throw new FindingsError(EXIT.damage)
}

function lineOf({ severity, projectId, subject, message }: Finding): string {
  const where = projectId === undefined ? subject : `project ${quoted(projectId)}, ${subject}`
  return `${severity}: ${where}: ${message}`.replace(/\s*[\r\n]+\s*/g, ' ')
}
