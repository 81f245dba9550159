"""What all pages share: one file that needs no network, in light and dark, with sortable tables."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape as _escape
from typing import NamedTuple

# Colours of `figures.SCHEME` are in here: a figure in the page takes the reader's scheme.
_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1f2328; --quiet: #59616a; --line: #8884;
  --soft: #8881; --good: #1a7f37; --part: #9a5b00; --bad: #c1121f; --blue: #1d5fa8; --pale: #5f97d0;
  --grid: #e6e6e6; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --ink: #e6e8ea; --quiet: #a5adb6;
  --good: #6fd07f; --part: #f0b04f; --bad: #ff8189; --blue: #79b8ff; --pale: #41719f;
  --grid: #343a41; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 0 auto; padding: 1rem;
  background: var(--page); color: var(--ink); }
h1 { font-size: 1.6rem; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
p, li { max-width: 46rem; overflow-wrap: anywhere; } .quiet { color: var(--quiet); }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; }
th { vertical-align: bottom; line-height: 1.75rem; }
th:first-child, td:first-child, .text, .claims td, .claims th { text-align: left; }
.text { max-width: 20rem; overflow-wrap: break-word; } .long { min-width: 13rem; }
th button { font: inherit; font-weight: 600; color: inherit; background: none; border: 0;
  padding: 0; min-height: 1.75rem; cursor: pointer; text-align: inherit; }
th button::after { content: "\\2195"; color: var(--quiet); padding-left: .3em; font-weight: 400; }
th[aria-sort=ascending] button::after { content: "\\2191"; color: var(--ink); }
th[aria-sort=descending] button::after { content: "\\2193"; color: var(--ink); }
th button:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
.wide { overflow-x: auto; margin: 1rem 0; }
.figures { display: flex; flex-wrap: wrap; gap: 0 1.5rem; align-items: flex-start; }
.figures > .wide { flex: 1 1 22rem; min-width: 0; max-width: 100%; }
summary { cursor: pointer; padding: .35rem 0; }
figure { margin: 1rem 0; max-width: 100%; } figure img, figure svg { max-width: 100%;
  height: auto; display: block; }
figure > img { background: white; border-radius: 6px; }
figcaption { color: var(--quiet); font-size: .9rem; max-width: 26rem; }
.pixels { width: 3.5rem; height: 3.5rem; image-rendering: pixelated; border-radius: 4px;
  display: block; }
pre { overflow-x: auto; background: var(--soft); padding: .6rem; border-radius: 6px;
  font-size: .8rem; }
.holds { color: var(--good); } .holds-partly { color: var(--part); }
.does-not-hold-here { color: var(--bad); }
@media (max-width: 40rem) {
  .claims tr, .claims td { display: block; border: 0; } .claims th { display: none; }
  .claims tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  .claims td { padding: .1rem 0; } .claims td:first-child { font-weight: 600; }
  th, td { padding: .25rem .4rem; }
}
"""

# Without it tables are as they were written. A column of numbers sorts as numbers, else as text;
# empty cells come last.
_SCRIPT = """
for (const head of document.querySelectorAll("th button")) head.addEventListener("click", () => {
  const th = head.parentElement, line = th.parentElement, body = line.closest("table").tBodies[0];
  const up = th.getAttribute("aria-sort") !== "ascending", place = th.cellIndex;
  for (const other of line.cells) if (other.querySelector("button"))
    other.setAttribute("aria-sort", "none");
  th.setAttribute("aria-sort", up ? "ascending" : "descending");
  const said = row => row.cells[place].textContent.trim();
  const value = row => parseFloat(said(row).replace(/,/g, ""));
  const rows = [...body.rows].filter(said), empty = [...body.rows].filter(row => !said(row));
  const numbers = rows.every(row => !isNaN(value(row)));
  rows.sort((a, b) => (up ? 1 : -1) * (numbers ? value(a) - value(b)
    : said(a).localeCompare(said(b), undefined, { numeric: true })));
  body.append(...rows, ...empty);
});
"""


_LONG = 30  # characters, from which a column of words needs room


def escape(text: str) -> str:
    """Text as HTML; a number and its % stay in one line."""
    return _escape(text.replace(" %", "\u00a0%"))


class Picture(NamedTuple):
    """A cell that is an image."""

    png: bytes
    alt: str


def document(title: str, heading: str, *parts: str) -> str:
    """A whole page; `heading` and the parts are HTML, the title is text."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{heading}</h1>{''.join(parts)}</main><script>{_SCRIPT}</script></body></html>\n"
    )


def section(name: str, *parts: str) -> str:
    """A heading that can be linked to, and what is below it as HTML."""
    anchor = "".join(c if c.isalnum() else "-" for c in name.lower())
    return f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{escape(name)}</h2>' + (
        "".join(parts) + "</section>"
    )


def paragraph(*sentences: str, quiet: bool = False) -> str:
    """Text."""
    return f"<p{' class=quiet' if quiet else ''}>{escape(' '.join(s for s in sentences if s))}</p>"


def bullets(items: Iterable[str]) -> str:
    """A list of texts."""
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def table(
    title: str,
    headings: Sequence[str],
    lines: Iterable[Sequence[str | Picture]],
    text: Sequence[str] = (),
) -> str:
    """A table that sorts by the heading that is pressed; `text`: headings of columns of words."""
    lines = list(lines)
    columns = [[line[i] for line in lines] for i in range(len(headings))]
    drawn = [any(isinstance(cell, Picture) for cell in column) for column in columns]
    words = [
        "" if heading not in text
        else ' class="text long"' if any(len(cell) > _LONG for cell in column)
        else ' class="text"'
        for heading, column in zip(headings, columns, strict=True)
    ]  # fmt: skip
    head = "".join(
        f'<th scope="col"{w}>{escape(h)}</th>' if d or len(lines) < 2 else
        f'<th scope="col"{w} aria-sort="none"><button type="button">{escape(h)}</button></th>'
        for h, w, d in zip(headings, words, drawn, strict=True)
    )  # fmt: skip
    body = "".join(
        "<tr>" + "".join(f"<td{w}>{_cell(c)}</td>" for c, w in zip(line, words, strict=True))
        + "</tr>"
        for line in lines
    )  # fmt: skip
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(title)}"><table>'
        f"<caption>{escape(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(cell: str | Picture) -> str:
    if isinstance(cell, Picture):
        return f'<img class="pixels" src="{_png(cell.png)}" alt="{escape(cell.alt)}">'
    return escape(cell)


def figure(image: bytes | str, alt: str, caption: str = "") -> str:
    """A PNG, or an SVG as `figures.inline` gives it; `alt` says what it shows."""
    if isinstance(image, bytes):
        shown = f'<img src="{_png(image)}" alt="{escape(alt)}">'
    else:
        shown = image.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{shown}{below}</figure>"


def figures(*each: str) -> str:
    """Figures side by side as far as there is room."""
    return f'<div class="figures">{"".join(each)}</div>'


def _png(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"
