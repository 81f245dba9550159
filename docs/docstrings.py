"""How the site shows docstrings: `name: what it is` becomes a list, `>>>` an example.

An extension of griffe, which reads the code for mkdocstrings without running it.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(\w+)\n-+$", re.MULTILINE)
_ARGUMENT = re.compile(r"^(\w+(?:, ?\w+)*) ?: (?=\S)")
_MANY = re.compile(r",\n(?=\w+(?:, \w+)* ?: )")  # a list of names that fills a line


class Docstrings(griffe.Extension):
    """Rewrites each docstring as Markdown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for each object that was read."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Sections as bold words, arguments as list items, doctests as fenced code."""
    parts = re.split(r"\n{2,}", _SECTION.sub(r"**\1**\n", text))
    return "\n\n".join(
        _paragraph(part, typed=before == "**Parameters**")
        for before, part in zip(["", *parts], parts, strict=False)
    )


def _paragraph(text: str, *, typed: bool) -> str:
    if text.lstrip().startswith(">>>"):
        return f"```pycon\n{text}\n```"
    return _arguments(text, typed) if _ARGUMENT.match(text) else text


def _arguments(text: str, typed: bool) -> str:
    """Lines `name: what it is`, each with the indented lines that continue it.

    typed: whether the first line of each is its type
    """
    items: list[str] = []
    for line in _MANY.sub(", ", text).splitlines():
        match = _ARGUMENT.match(line)
        if not match:
            items.append(f"    {line.strip()}")
        elif typed:
            items.append(f"- `{match[1]}` (*{line[match.end() :]}*)")
        else:
            items.append(f"- `{match[1]}`: {line[match.end() :]}")
    return "\n".join(items)
