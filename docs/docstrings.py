"""How the site shows docstrings: `name: what it is` is a list, `>>>` an example, `a[i][j]` code.

An extension of griffe, which reads the code for mkdocstrings without running it.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ARGUMENT = re.compile(r"^(\w+(?:, ?\w+)*): (?=\S)")
_ENTRY = re.compile(r"(`[^`]*`)|(\w+(?:\[\w+\]){2,})")  # result[i][j], which else is a link
_MANY = re.compile(r",\n(?=\w+(?:, \w+)*: )")  # a list of names that fills a line


class Docstrings(griffe.Extension):
    """Rewrites each docstring as Markdown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each object that was read."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Arguments as list items, doctests as fenced code."""
    return "\n\n".join(map(_paragraph, re.split(r"\n{2,}", text)))


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return f"```pycon\n{text}\n```"
    text = _ENTRY.sub(lambda found: found[1] or f"`{found[2]}`", text)
    return _arguments(text) if _ARGUMENT.match(text) else text


def _arguments(text: str) -> str:
    """Lines `name: what it is`, each with the indented lines that continue it."""
    items: list[str] = []
    for line in _MANY.sub(", ", text).splitlines():
        match = _ARGUMENT.match(line)
        items.append(f"- `{match[1]}`: {line[match.end() :]}" if match else f"    {line.strip()}")
    return "\n".join(items)
