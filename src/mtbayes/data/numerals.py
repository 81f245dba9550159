"""How text spells numbers: which sign stands before the decimals, decided once from all cells.

2.5 has a decimal point, 4,5 a decimal comma, and 1.234.567 points between its thousands. But 1.628
is 1628 or a little more than one and a half: such a cell is read as the others of its column are,
or, where these say nothing, as the other columns of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from mtbayes.types import FloatArray

POINT, COMMA = ".", ","
_SIGN, _DIGITS = r"[^\w\s.,-]", r"\d[\d.,' ]*"
_DRESSED = re.compile(
    rf"{_SIGN}{{1,2}} ?{_DIGITS}{_SIGN}?|{_DIGITS}( ?{_SIGN}| \w{{1,3}})|\d+('\d{{3}})+[.,\d]*"
)
UNTOLD = ""
"""In the place of a sign, where no cell of a file tells; numbers are read with a point."""
NAMES = {POINT: "point", COMMA: "comma"}
_OTHER = {POINT: COMMA, COMMA: POINT}
_READABLE = 0.95  # of the cells, for a column to be one of numbers


def _pattern(decimal: str) -> str:
    """A regular expression of numbers in this style, thousands apart or not."""
    sign, group = (rf"\{decimal}", rf"\{_OTHER[decimal]}")
    return (
        rf"^[+-]?((\d+{sign}?\d*|{sign}\d+)([eE][+-]?\d+)?"
        rf"|[1-9]\d{{0,2}}({group}\d{{3}})+({sign}\d*)?)$"
    )


_PATTERNS = {sign: _pattern(sign) for sign in (POINT, COMMA)}
_PLAIN = r"^[+-]?(\d+([eE][+-]?\d+)?|nan|inf|infinity)$"


class Signs(NamedTuple):
    """How many cells of a column can be read in one style alone, in either, or in none."""

    point: int
    comma: int
    either: int
    """With a sign that may be that of decimals or of thousands."""
    none: int

    @property
    def decimal(self) -> str | None:
        """The style that most cells speak for; None where none does."""
        if self.point == self.comma == 0:
            return None
        return COMMA if self.comma > self.point else POINT

    def beside(self, other: Signs) -> Signs:
        """Of both together."""
        return Signs(*(a + b for a, b in zip(self, other, strict=True)))


def signs(text: Any) -> Signs | None:
    """What a column of text says of the style of its numbers; None if they are no numbers.

    >>> signs(pa.array(["1.628", "2.5", "3", "1.000"]))
    Signs(point=1, comma=0, either=2, none=0)
    """
    marked = pc.match_substring_regex(text, "[.,]")
    with_sign = pc.drop_null(text.filter(marked))
    given = len(text) - text.null_count
    as_point, as_comma = (
        pc.match_substring_regex(with_sign, _PATTERNS[sign]) for sign in (POINT, COMMA)
    )
    point = _count(pc.and_(as_point, pc.invert(as_comma)))
    comma = _count(pc.and_(as_comma, pc.invert(as_point)))
    either = _count(pc.and_(as_point, as_comma))
    plain = given - len(with_sign)
    if plain and not (point or comma or either):
        return None  # nothing to decide: whole numbers, or no numbers at all
    if plain:
        rest = text.filter(pc.invert(marked))
        plain = _count(pc.match_substring_regex(rest, _PLAIN, ignore_case=True))
    read = plain + point + comma + either
    if not read or read < _READABLE * given:
        return None
    return Signs(point, comma, either, given - read)


class Decided(NamedTuple):
    """The decimal sign of each column of text; none where no cell of any column tells.

    A column of whole numbers has the sign of the others: later rows of it may have decimals.
    """

    decimals: dict[str, str]
    ambiguous: tuple[str, ...]
    """Columns of which neither their own cells nor those of others tell."""


def decide(columns: Mapping[str, Any]) -> Decided:
    """From all cells of all columns of a file, as trimmed text.

    >>> decide({"a": pa.array(["1.628"]), "b": pa.array(["4,5"])})
    Decided(decimals={'a': ',', 'b': ','}, ambiguous=())
    >>> decide({"a": pa.array(["1628"]), "b": pa.array(["4,5"])}).decimals
    {'a': ',', 'b': ','}
    """
    found = {name: seen for name, text in columns.items() if (seen := signs(text)) is not None}
    usual = reduce(Signs.beside, found.values(), Signs(0, 0, 0, 0)).decimal
    decimals = {} if usual is None else dict.fromkeys(columns, usual)
    ambiguous = []
    for name, seen in found.items():
        decimals[name] = seen.decimal or usual or POINT
        if seen.either and seen.decimal is None and usual is None:
            ambiguous.append(name)
    return Decided(decimals, tuple(ambiguous))


def read(text: Any, decimal: str) -> tuple[Any, int]:
    """Cells of trimmed text as an Arrow array of numbers, and how many could not be read.

    >>> read(pa.array(["1.628,5", "2.5"]), ",")[0].to_pylist()
    [1628.5, None]
    """
    if decimal == POINT and not pc.any(pc.match_substring(text, COMMA)).as_py():
        try:
            return pc.cast(text, pa.float64()), 0
        except pa.ArrowInvalid:
            pass
    fits = pc.or_(
        pc.match_substring_regex(text, _PATTERNS[decimal]),
        pc.match_substring_regex(text, _PLAIN, ignore_case=True),
    )
    plain = pc.replace_substring(pc.if_else(fits, text, None), _OTHER[decimal], "")
    found = pc.cast(pc.replace_substring(plain, decimal, POINT), pa.float64())
    return found, found.null_count - text.null_count


def both(text: Any) -> tuple[str, float, float]:
    """A cell that can be read in two ways, and its number with a decimal point and with a comma."""
    fits = [pc.match_substring_regex(text, _PATTERNS[sign]) for sign in (POINT, COMMA)]
    marked = pc.match_substring_regex(text, "[.,]")
    some = text.filter(pc.and_(marked, pc.and_(*fits)))[:1]
    point, comma = (read(some, sign)[0][0].as_py() for sign in (POINT, COMMA))
    return some[0].as_py(), point, comma


def contradiction(text: Any, decimal: str, numbers: FloatArray) -> int | None:
    """The first cell that is a number in the other style alone; numbers: those that were read.

    One that is too large for a number, as 1e400, is in both.
    """
    own, other = (pc.match_substring_regex(text, _PATTERNS[s]) for s in (decimal, _OTHER[decimal]))
    unread = pc.and_not(pa.array(numbers != numbers), own)
    place = pc.index(pc.fill_null(pc.and_(other, unread), False), True).as_py()
    return None if place < 0 else int(place)


def _count(truths: Any) -> int:
    return int(pc.sum(truths).as_py() or 0)


def dressed(cells: Iterable[str]) -> bool:
    """Whether all cells are numbers with a sign of money, a unit or brackets, which we do not read.

    >>> dressed(["$1,200.50", "7 kg", "12%", "(3.5)", "1'000"]), dressed(["7 kg", "AB-12"])
    (True, False)
    """
    return all(map(_DRESSED.fullmatch, cells))
