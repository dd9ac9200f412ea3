"""The look of a report: readable on a phone and on paper, in light and in dark, without a font of elsewhere."""

SERIES = ("#0b6e99", "#b3541e", "#4b7f1f", "#8a3ffc", "#a31545", "#5c5c5c")
"""Of lines and marks, one a system; each is told from the background, and the label is beside it too."""

CSS = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #4a525c; --paper: #ffffff; --line: #c9ced6; --bar: #e4edf4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --soft: #b4bcc6; --paper: #14171b; --line: #444b55; --bar: #24313c; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; background: var(--paper); color: var(--ink);
       font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.5rem 0; }
h2 { font-size: 1.25rem; margin: 2rem 0 0.5rem; } h3 { font-size: 1rem; margin: 1rem 0 0.25rem; }
p, dd { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.best { font-weight: 700; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: 0.15rem 1rem; }
dt { color: var(--ink); } dd { margin: 0; }
svg { max-width: 100%; height: auto; }
.chart text { fill: var(--ink); font: 13px system-ui, sans-serif; }
.chart .axis { stroke: var(--line); fill: none; }
details { border-bottom: 1px solid var(--line); padding: 0.35rem 0; }
summary { cursor: pointer; }
summary:focus-visible, .wide:focus-visible { outline: 3px solid #0b6e99; outline-offset: 2px; }
ol { margin: 0.25rem 0; padding-left: 2.25rem; } .right { font-weight: 700; }
.cited { list-style: none; margin: 0.25rem 0; padding: 0; } q { color: var(--soft); }
.shots { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
figure { margin: 0; flex: 0 1 20rem; min-width: 0; } figcaption { color: var(--soft); font-size: 0.875rem; }
.shot { display: block; width: 100%; border: 1px solid var(--line); background: #ffffff; }
.symbols { position: absolute; }
.graph { background: #f6f8fa; border: 1px solid var(--line); padding: 0.5rem; }
.graph svg { display: block; max-width: none; margin: 0 auto; }
pre { white-space: pre-wrap; margin: 0.25rem 0; padding: 0.5rem; font-size: 0.8125rem; line-height: 1.4;
      border: 1px solid var(--line); }
.steps span { display: block; padding-left: 20ch; text-indent: -20ch; }
@media (max-width: 40rem) {
  .steps span { padding-left: 4ch; text-indent: -4ch; }
  th[scope=row] { white-space: normal; min-width: 9rem; }
}
.tag { color: var(--soft); }
@media print { details { break-inside: avoid; } }
"""
