"""How the site typesets formulas: a hook of mkdocs that teaches its Markdown to see them.

Indented blocks whose lines are all formulas become MathML, and so do formulas in a sentence. Code,
headings and all else stay as they are. Browsers draw MathML by themselves: nothing is loaded.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

sys.path.insert(0, str(Path(__file__).parent))

from formulas import block, inline, is_formula
from sentences import FORMULA, parts, shows


class _Blocks(Preprocessor):
    """Indented formulas, after fenced code has been put aside."""

    def run(self, lines: list[str]) -> list[str]:
        result: list[str] = []
        for group in _groups(lines):
            if group[0].startswith("    ") and all(map(is_formula, group)) and _free(result):
                result += ["", self.md.htmlStash.store(block(group)), ""]
            else:
                result += group
        return result


def _groups(lines: list[str]) -> list[list[str]]:
    """Runs of indented lines, and all other lines one by one."""
    groups: list[list[str]] = []
    for line in lines:
        inside = line.startswith("    ") and line.strip()
        if inside and groups and groups[-1][0].startswith("    ") and groups[-1][0].strip():
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _free(before: list[str]) -> bool:
    """Whether an indented block may begin: after an empty line or a heading, and not in a list."""
    said = [line for line in before if line.strip()]
    return not before or not before[-1].strip() or (bool(said) and said[-1].startswith("#"))


class _Sentences(InlineProcessor):
    """Formulas in sentences; headings keep their names."""

    ANCESTOR_EXCLUDES = ("h1", "h2", "h3", "h4", "h5", "h6")

    def handleMatch(
        self, m: re.Match[str], data: str
    ) -> tuple[str, int, int] | tuple[None, None, None]:
        """Markdown's name for what is done with a match."""
        if not shows(m[0]):
            return None, None, None
        return self.md.htmlStash.store("<wbr>".join(map(inline, parts(m[0])))), m.start(), m.end()


class Formulas(Extension):
    """Both, for Markdown."""

    def extendMarkdown(self, md: Markdown) -> None:
        """Markdown's name for what an extension does."""
        md.preprocessors.register(_Blocks(md), "formulas", 15)
        # After code, links and tags, whose targets are no formulas; before `*` and `_` as emphasis.
        md.inlinePatterns.register(_Sentences(FORMULA.pattern, md), "sentences", 75)


def on_config(config: Any) -> Any:
    """Called by mkdocs once."""
    config.markdown_extensions.append(Formulas())
    return config


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs for each page: gives tables a frame that they may scroll in."""
    return re.sub("(<table>.*?</table>)", r'<div class="wide">\1</div>', html, flags=re.DOTALL)
