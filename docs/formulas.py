"""Formulas as these pages write them, for the site as MathML: `p_q(x) = E_q p_θ(x)`.

They are text that a terminal can show, with `_` for what stands below and `^` for what stands
above, so that the pages are read as well where nothing is typeset. Brackets after `_` and `^` and
around a fraction are for the reader of text, and are left out.
"""

from __future__ import annotations

import re
from html import escape
from typing import NamedTuple

FUNCTIONS = {"log", "exp", "max", "mean", "kl", "KL"}
WORDS = {"row", "is", "wrong", "const", "bound", "beta", "std", "Var", "PAC"}
"""Words that may stand in a formula, beside functions; other letters are factors one by one."""

_TOKEN = re.compile(
    r"(\s*)(\d+(?:\.\d+)?|[A-Za-zα-ωΑ-ΡΤ-Ω][\u0302-\u0304]|[A-Za-z]+|[α-ωΑ-ΡΤ-Ω]|\|\||<=|>=|⁻¹|\S)"
)
_RELATIONS = {"=", "∝", "≤", "≥", "<", ">", "~", ",", ":"}
_SHOWN = {"<=": "≤", ">=": "≥", "-": "−", "~": "∼", "||": "∥", "·": "⋅", "Σ": "∑", "*": "∗"}
_ABOVE = {"²": "2", "³": "3", "⁻¹": "−1", "ᵀ": "T"}
_OVER = {"\u0302": "^", "\u0303": "~", "\u0304": "¯"}
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}


class Atom(NamedTuple):
    """A part that stands by itself: its MathML, and what its neighbours need to know of it."""

    markup: str
    spaced: bool = False  # whether white space comes before
    text: str = ""  # of an operator or a name
    inner: str | None = None  # of brackets that a fraction makes needless: what is in them


def is_formula(text: str) -> bool:
    """Whether a line is a formula and not a sentence: it relates things, and has no other words.

    >>> is_formula("p_q(x) = E_q p_θ(x)"), is_formula("10 modes at t=0.5: certified 0.66")
    (True, False)
    >>> is_formula("x ≤ 1      whatever stands to the right")
    True
    """
    text = re.split(r" {3,}", text.strip())[0]
    words = re.findall(r"[A-Za-z]{3,}", text)
    related = re.search(r"[=∝≤≥]|[_^]\S*\(", text)
    return bool(related) and all(word in FUNCTIONS | WORDS for word in words)


def block(lines: list[str]) -> str:
    """Formulas one below another; what stands three spaces to the right is a column of its own.

    >>> block(["x ≤ 1   if so"]).count("<mtd")
    2
    """
    rows = "".join(
        f"<mtr>{''.join(f'<mtd>{_cell(cell)}</mtd>' for cell in re.split(r' {3,}', line))}</mtr>"
        for line in map(str.strip, lines)
    )
    said = escape("\n".join(map(str.strip, lines)))
    table = f'<mtable columnalign="left" displaystyle="true">{rows}</mtable>'
    return f'<div class="formula wide"><math display="block" alttext="{said}">{table}</math></div>'


def inline(text: str) -> str:
    """A symbol in a sentence.

    >>> inline("p^2")
    '<math alttext="p^2"><msup><mi>p</mi><mn>2</mn></msup></math>'
    """
    return f'<math alttext="{escape(text)}">{mathml(text, flat=True)}</math>'


def mathml(text: str, *, flat: bool = False) -> str:
    """The MathML of a formula; `flat` leaves fractions in the line.

    >>> mathml("(1-t)/2")
    '<mfrac><mrow><mn>1</mn><mo>−</mo><mi>t</mi></mrow><mn>2</mn></mfrac>'
    """
    return _Reader(text).all(flat)


def _cell(text: str) -> str:
    return mathml(text) if is_formula(text) else f"<mtext>{escape(text)}</mtext>"


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = [(bool(m[1]), m[2]) for m in _TOKEN.finditer(text)]
        self.place = 0

    def all(self, flat: bool) -> str:
        return self.until("", flat)[0]

    def peek(self) -> str:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    def next(self) -> tuple[bool, str]:
        self.place += 1
        return self.tokens[self.place - 1]

    def until(self, end: str, flat: bool) -> tuple[str, bool]:
        """What comes up to a bracket, and whether it is one fraction alone."""
        atoms: list[Atom] = []
        while self.peek() and self.peek() != end:
            atoms.append(self.atom(flat))
        self.place += 1
        if not flat:
            atoms = _fractions(atoms)
        return _joined(atoms), len(atoms) == 1 and atoms[0].markup.startswith("<mfrac")

    def atom(self, flat: bool) -> Atom:
        spaced, token = self.next()
        inner = None
        if token in _CLOSED_BY:
            adjacent = (
                not spaced and self.place > 1 and self.tokens[self.place - 2][1] not in "([{/-·√"
            )
            inner, alone = self.until(_CLOSED_BY[token], flat)
            markup = f"<mrow><mo>{token}</mo>{inner}<mo>{_CLOSED_BY[token]}</mo></mrow>"
            if alone and token == "(" and not adjacent:
                markup = inner
            if token != "(" or adjacent:
                inner = None
            token = "("
        elif token == "√" and self.peek():
            under = self.atom(flat)
            return Atom(f"<msqrt>{under.inner or under.markup}</msqrt>", spaced)
        else:
            markup = _symbol(token)
        return self.scripts(Atom(markup, spaced, token, inner))

    def scripts(self, base: Atom) -> Atom:
        """What stands below and above a base."""
        found: dict[str, str] = {}
        while self.peek() in ("_", "^", "*", *_ABOVE) and not self.tokens[self.place][0]:
            if self.peek() == "*" and "^" not in found and base.text == "(":
                break
            mark = self.next()[1]
            if mark in ("_", "^"):
                found[mark] = self.script(mark)
            else:
                found["^"] = (
                    f"<mo>{_SHOWN[mark]}</mo>" if mark == "*" else f"<mn>{_ABOVE[mark]}</mn>"
                )
        if not found:
            return base
        kind = {"_": "sub", "^": "sup", "_^": "subsup"}["".join(sorted(found, reverse=True))]
        around = {"sub": "under", "sup": "over", "subsup": "underover"}
        tag = "m" + (around[kind] if base.text in ("Σ", "max") else kind)
        parts = base.markup + "".join(found[mark] for mark in ("_", "^") if mark in found)
        return base._replace(markup=f"<{tag}>{parts}</{tag}>", inner=None)

    def script(self, mark: str) -> str:
        token = self.next()[1]
        if token in ("(", "{"):
            return f"<mrow>{self.until(_CLOSED_BY[token], True)[0]}</mrow>"
        if token == "-":
            return f"<mrow><mo>−</mo>{_symbol(self.next()[1])}</mrow>"
        shown = _symbol(token)
        if mark == "^" and token.islower() and self.peek() == "_":  # p^t_p: t_p stands above
            self.place += 1
            return f"<msub>{shown}{_symbol(self.next()[1])}</msub>"
        if (
            re.fullmatch("[α-ω]", token)
            and re.fullmatch("[a-z]", self.peek())
            and not self.spaced()
        ):
            return f"<msub>{shown}{_symbol(self.next()[1])}</msub>"  # p_θj: θ_j stands below
        return shown

    def spaced(self) -> bool:
        return self.tokens[self.place][0]


def _symbol(token: str) -> str:
    """A name, a number or an operator."""
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    if token[-1] in _OVER:
        return f"<mover><mi>{token[0]}</mi><mo>{_OVER[token[-1]]}</mo></mover>"
    letters = re.findall(r"\w", token)
    if token in FUNCTIONS | WORDS or (token[0].isalpha() and len(letters) == 1 and token != "Σ"):
        return f"<mi>{token}</mi>"
    if token[0].isalpha() and token != "Σ":
        return "<mrow>" + "".join(f"<mi>{one}</mi>" for one in letters) + "</mrow>"
    if token in "∞∂":
        return f"<mi>{token}</mi>"
    if token == "/":
        return '<mo lspace="0" rspace="0">/</mo>'
    return f"<mo>{escape(_SHOWN.get(token, token))}</mo>"


def _fractions(atoms: list[Atom]) -> list[Atom]:
    """`a/b` becomes a over b; with spaces around the stroke, all between two relations."""
    places = [i for i, atom in enumerate(atoms) if atom.text == "/"]
    if not places:
        return atoms
    i = places[0]
    wide = atoms[i].spaced
    start, end = i, i + 1
    while start > 0 and not _ends(atoms[start - 1], wide):
        start -= 1
        if not wide and atoms[start].spaced:
            break
    while (
        end < len(atoms)
        and not _ends(atoms[end], wide)
        and (wide or end == i + 1 or not atoms[end].spaced)
    ):
        end += 1
    above, below = (_bare(atoms[a:b]) for a, b in ((start, i), (i + 1, end)))
    made = Atom(f"<mfrac>{above}{below}</mfrac>", atoms[start].spaced)
    return _fractions([*atoms[:start], made, *atoms[end:]])


def _ends(atom: Atom, wide: bool) -> bool:
    return atom.text in _RELATIONS | {"/"} or (not wide and atom.text in {"+", "-", "·"})


def _bare(atoms: list[Atom]) -> str:
    """One element; brackets that stand alone are left out."""
    if len(atoms) == 1:
        return atoms[0].markup if atoms[0].inner is None else f"<mrow>{atoms[0].inner}</mrow>"
    return f"<mrow>{_joined(atoms)}</mrow>"


def _joined(atoms: list[Atom]) -> str:
    """Side by side, with thin spaces around a function's name and between words."""
    parts = []
    for before, atom, after in zip([None, *atoms], atoms, [*atoms[1:], None], strict=False):
        sign = before is None or before.text in _RELATIONS  # a minus, and not a difference
        prefix = atom.text == "-" and sign
        parts.append(atom.markup.replace("<mo>", '<mo form="prefix">') if prefix else atom.markup)
        named = atom.text in FUNCTIONS and after and after.text not in ("(", "/")
        factor = after and after.text in FUNCTIONS and "<mo>" not in atom.markup[:4]
        if named or (factor and atom.text != "∂") or {atom.text, after and after.text} <= WORDS:
            parts.append('<mspace width="0.2em"/>')
    return "".join(parts)
