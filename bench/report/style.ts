/** Light and dark by the reader's setting. */
export const STYLE = `
:root { color-scheme: light dark; --page: #fff; --text: #1b1f24; --faint: #5b6570; --line: #d8dee4; --own: #2563eb; --reference: #a3adb8;
  --good: #116329; --good-back: #dafbe1; --bad: #a40e26; --bad-back: #ffebe9; --mild: #7a4e00; --mild-back: #fff3d1; --head: #f6f8fa }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --text: #e6edf3; --faint: #9aa5b1; --line: #30363d; --own: #5b9bff; --reference: #55606c;
  --good: #7ee787; --good-back: #12361c; --bad: #ffa198; --bad-back: #4a1216; --mild: #f2cc60; --mild-back: #3d2e05; --head: #161b22 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 1240px; margin: 0 auto; padding: 24px 20px 64px }
h1 { font-size: 26px; margin: 0 0 4px } h2 { font-size: 19px; margin: 36px 0 10px; border-bottom: 1px solid var(--line); padding-bottom: 4px }
.facts { color: var(--faint); margin: 0 0 8px } pre { font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap }
.warning { background: var(--mild-back); color: var(--mild); padding: 8px 12px; border-radius: 6px }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-size: 12.5px }
th, td { text-align: left; padding: 5px 8px; border-bottom: 1px solid var(--line); vertical-align: top }
th { background: var(--head); font-weight: 600; vertical-align: bottom } .n { text-align: right; font-variant-numeric: tabular-nums } td.n { white-space: nowrap }
td:first-child { min-width: 190px } small { display: block; color: var(--faint) }
.verdict { border-radius: 10px; padding: 1px 9px; white-space: nowrap; background: var(--head); color: var(--faint) }
.met, .better { background: var(--good-back); color: var(--good) } .not-met, .worse { background: var(--bad-back); color: var(--bad) }
.uncounted { background: var(--mild-back); color: var(--mild) }
figure { margin: 14px 0 } figcaption { color: var(--faint); font-size: 13px; margin-bottom: 6px }
svg { display: block; width: 100%; height: auto } svg text { font: 13px system-ui, sans-serif; dominant-baseline: central; fill: var(--text) }
svg text.reference { fill: var(--faint) } rect.own { fill: var(--own) } rect.reference { fill: var(--reference) }
.range { stroke: var(--text); stroke-width: 1.2; fill: none }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 24px } @media (max-width: 700px) { .pair { grid-template-columns: 1fr } }
`
