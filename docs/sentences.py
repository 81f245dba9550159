"""Formulas in the midst of sentences: where one begins, and where words go on.

A formula is a run of letters, numbers, brackets and signs that shows what it is: by `_` or `^`, by
a letter or sign that words have not, or by an argument, as in `p(x)`. A letter alone stays text, as
`a` is a word; brackets with words in them stay text too.
"""

from __future__ import annotations

import re

_END = r"(?![^\W²³ᵀ]|\^|\.\d)"
_NUMBER = rf"(?:\d*\.)?\d+{_END}"
_LETTER = r"[A-Za-z][\u0302-\u0304]?"
_GREEK = r"d?(?:[α-ωΑ-Ω][\u0302-\u0304]?){1,2}"
_INSIDE = (
    "(?:(?:log|exp|mean|max|std|beta|bound|KL|d[a-z])(?![a-z])"
    r"""|(?![A-Za-z]{2})[^][()\n"`:\x02])"""
)


def _brackets(deep: int) -> str:
    """Brackets without words, which may hold others."""
    inside = rf"(?:{_brackets(deep - 1)}|{_INSIDE})" if deep else _INSIDE
    return rf"(?:\({inside}+\)|\[{inside}+\])"


_ROUND = rf"(?=\(){_brackets(3)}"
_SHORT = r"-?[A-Za-z0-9α-ωΑ-Ω∞][a-z0-9]?(?![A-Za-z0-9])"
_SCRIPT = rf"(?:_(?:\{{[^{{}}]*\}}|{_SHORT})|\^(?:\{{[^{{}}]*\}}|{_ROUND}|{_SHORT})|[²³ᵀ]|⁻¹)"
_NAMED = rf"(?:log|exp|max|mean|Var|PAC|∂|{_LETTER}|{_GREEK})"
_SYMBOL = "|".join((
    rf"{_NAMED}{_SCRIPT}+(?:{_brackets(3)}{_SCRIPT}*|{_END})",  # p_q(z)^m
    rf"(?:log|exp|max|KL|{_LETTER}'*|{_GREEK}){_ROUND}{_SCRIPT}*",  # f(x), log(1/δ)
    rf"{_GREEK}(?:(?<!\*.)\*(?!\*)|{_END})",  # φ*, but not *φ*
    rf"[A-Za-z][\u0302-\u0304]{_END}",
    rf"(?!\([^()]*,){_ROUND}{_SCRIPT}*",  # (1/std)^(1-t)
))  # fmt: skip
_SIGNS = "(?:[∫∂√Σ] ?|(?:log|exp) )"
_FACTOR = rf"(?:{_SIGNS}*(?:{_SYMBOL})|{_SIGNS}+(?:{_LETTER}{_END}(?!\()|{_NUMBER}))"
_PRODUCT = "|".join((
    rf"\d*{_FACTOR}(?: ?{_FACTOR}| (?![aI]\b)d?{_LETTER}{_END})*",
    rf"{_LETTER}{_END}|{_NUMBER}|∞|d[a-z](?=/)",
))  # fmt: skip
_BETWEEN = r"(?: (?:<=|>=|[=≤≥<>∝+−·/→-]) |<=|>=|[=≤≥<>∝+−·/-])-?"
_TIMES = rf"\d+ (?={_NAMED}{_SCRIPT})"
FORMULA = re.compile(
    rf"(?<![\w.)\]}}/^²³#&\\'-])-?(?:{_PRODUCT})(?:{_BETWEEN}(?:{_TIMES})?(?:{_PRODUCT}))*"
)
_SHOWS = re.compile(r"[_^α-ωΑ-Ω∂∫√²³ᵀ⁻\u0302-\u0304]|[A-Za-z]\(|/\(")
_LONG = 30


def shows(run: str) -> bool:
    """Whether a run that was matched is a formula for sure.

    >>> runs = FORMULA.findall("a row z has -log_t p_q(z) = ε there, and e^(-1/2)/√(2(1-t))")
    >>> [run for run in runs if shows(run)]
    ['-log_t p_q(z) = ε', 'e^(-1/2)/√(2(1-t))']
    """
    return bool(_SHOWS.search(run))


def parts(run: str) -> list[str]:
    """A long run in parts between which a line may break, before relations outside brackets.

    >>> parts("f(x = 1) = g(x)^(1-t)/(1-t) + b ≤ 2")
    ['f(x = 1)', '= g(x)^(1-t)/(1-t) + b', '≤ 2']
    >>> parts("u = z - φ")
    ['u = z - φ']
    """
    if len(run) < _LONG:
        return [run]
    found: list[str] = []
    deep = 0
    for word in run.split(" "):
        if not found or (not deep and word in {"=", "∝", "<", ">", "≤", "≥", "<=", ">=", "→"}):
            found.append(word)
        else:
            found[-1] += f" {word}"
        deep += sum((sign in "([{") - (sign in ")]}") for sign in word)
    return found
