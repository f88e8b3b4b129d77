"""The page for a student: points by goal, the reason of each, the access it is about, and the own code.

One file that asks for nothing else: no script, no style sheet, no font, no picture from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from lanewise.errors import Error
from lanewise.grading.marking import Marked, TaskMark
from lanewise.grading.plain import visible
from lanewise.labs import Lab, Verdict
from lanewise.labs.pictures import picture
from lanewise.labs.variant import PUBLIC
from lanewise.text import count

LONGEST_CODE = 20_000  # characters
# Nothing may run or load, whatever got past the escaping.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

STYLE = """
:root { color-scheme: light dark; --text: #1b1f27; --soft: #4a5160; --back: #ffffff; --box: #f3f4f6;
  --line: #8a90a0; --good: #17603a; --bad: #9a2f0c; }
@media (prefers-color-scheme: dark) { :root { --text: #e8eaf0; --soft: #b6bcc9; --back: #14171d;
  --box: #20252e; --line: #6d7484; --good: #7fd3a4; --bad: #ffab8a; } }
body { margin: 0 auto; max-width: 46rem; padding: 1rem; color: var(--text); background: var(--back);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line);
  padding-top: 1rem; } h3 { font-size: 1rem; }
.soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
.scroll, pre { overflow-x: auto; } table { border-collapse: collapse; margin: 1rem 0; }
caption { text-align: left; color: var(--soft); } th, td { text-align: left; vertical-align: top;
  padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); } td.number { text-align: right; }
pre { background: var(--box); padding: .8rem; unicode-bidi: plaintext; } figure { margin: 1rem 0; }
figure svg { display: block; max-width: none; background: #fbfaf7; } .points { font-size: 1.25rem; }
"""


def page(marked: Marked, lab: Lab, marks: tuple[TaskMark, ...]) -> str:
    """The page as HTML."""
    title = f"{lab.title}: feedback for {visible(marked.student)}"
    variant = "" if lab.seed == PUBLIC else f", variant {lab.seed}"
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>",
            f"<h1>{escape(lab.title)}</h1>",
            f"<p>Feedback for <bdi>{escape(visible(marked.student))}</bdi>."
            f' <span class="soft">Lab <code>{escape(lab.name)}</code>{variant}.</span></p>',
            f'<p class="points"><strong>{marked.score:g} of {marked.max_score:g} points.</strong></p>',
            *(part for mark in marks for part in _task(mark)),
            '<p class="soft">Your code was read and traced, on the sizes of the lab and on others. Counts of'
            " wavefronts and sectors are the same on every GPU.</p>",
            "</main>\n</body>\n</html>\n",
        ]
    )


def _task(mark: TaskMark) -> Iterator[str]:
    verdict = mark.verdict
    colour = "good" if verdict else "bad"
    points = f"{verdict.points:g} of {count(int(verdict.max_points), 'point')}"
    yield f"<section>\n<h2><code>{escape(verdict.task)}</code>: {points}</h2>"
    yield f'<p><strong class="{colour}">{escape(verdict.head)}</strong> {_sentences(mark.notes)}</p>'
    yield from (f"<p>{escape(visible(note))}</p>" for note in verdict.notes)
    yield from _goals(verdict)
    yield from _costs(verdict)
    yield from _picture(verdict)
    if mark.cell is not None:
        yield f'<h3 id="code-{escape(verdict.task)}">Your code (cell {mark.cell.number})</h3>'
        code = escape(visible(mark.cell.text[:LONGEST_CODE]))
        label = f"code-{escape(verdict.task)}"
        yield f'<pre tabindex="0" role="region" aria-labelledby="{label}"><code>{code}</code></pre>'
    yield "</section>"


def _sentences(notes: tuple[str, ...]) -> str:
    return escape(visible(" ".join(notes)))


def _goals(verdict: Verdict) -> Iterator[str]:
    told = [one for one in verdict.judged if one.sentence]
    if not told:
        return
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="Goals of {escape(verdict.task)}">'
    yield '<table><caption>Goals</caption><thead><tr><th scope="col">Goal</th><th scope="col">Points</th>'
    yield '<th scope="col">Why</th></tr></thead><tbody>'
    for one in told:
        mark = '<span class="good">✓</span>' if one.holds else '<span class="bad">✗</span>'
        yield (
            f'<tr><th scope="row">{mark} {escape(one.name)}</th>'
            f"<td>{one.earned:g}/{one.points:g}</td><td>{escape(visible(one.sentence))}</td></tr>"
        )
    yield "</tbody></table></div>"


def _costs(verdict: Verdict) -> Iterator[str]:
    if not verdict.rows:
        return
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="Costs of {escape(verdict.task)}">'
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in verdict.rows[0])
    yield f"<table><caption>What it costs</caption><thead><tr>{head}</tr></thead><tbody>"
    for row in verdict.rows:
        first, *rest = row.values()
        cells = "".join(f'<td class="number">{escape(_number(value))}</td>' for value in rest)
        yield f'<tr><th scope="row">{escape(str(first))}</th>{cells}</tr>'
    yield "</tbody></table></div>"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _picture(verdict: Verdict) -> Iterator[str]:
    """The drawing of the access that the verdict is about; none where Matplotlib is missing."""
    if verdict.access is None:
        return
    try:
        drawing = picture(verdict.access)
    except (ModuleNotFoundError, Error):
        return
    yield f'<figure class="scroll" tabindex="0" role="group" aria-label="Picture for {escape(verdict.task)}">'
    yield f"{drawing.svg()}<figcaption>{escape(drawing.alt)}</figcaption></figure>"
