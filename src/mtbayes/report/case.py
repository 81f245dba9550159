"""The numbers of the page of a model, computed before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mtbayes.types import Array, FloatArray


class Case(NamedTuple):
    """All that the page tells. Arrays have an entry for each row of DATA, unless they say so."""

    target: str
    labels: Sequence[str]
    """Classes as text; none for a number."""
    model_file: str
    data_file: str
    words: Sequence[str]
    """What was learned, a sentence each."""
    y: Array
    """Codes of the given classes, or the given numbers."""
    held_out: FloatArray
    """Probabilities [n, C], or mean and sd [n, 2], by fits that have not seen the row."""
    wrong: FloatArray
    """Probability that the target is wrong, by the same fits."""
    seen: Array
    """Whether the final fit has seen the row."""
    judged: bool
    """Whether rows that it has seen were judged by others; they may be too few for that."""
    t: float
    chosen: bool
    """Whether t was chosen, and not given."""
    path: list[dict[str, float]]
    contamination: tuple[float, float, float]
    """Share of wrong rows among those that were fitted, and its interval."""
    suspects: list[dict[str, Any]]
    """Rows to look at: row, probability, given, suggested, why, cells."""
    pictures: FloatArray | None
    """The same rows as images, [k, side, side]."""
    brightness: tuple[float, float]
    """What is black and white in them."""
    aleatoric: FloatArray
    """Doubt of some rows, [s]: bits for classes, variance for numbers."""
    epistemic: FloatArray
    importance: list[Any]
    """`Importance` of each column, the most needed first."""
    effects: list[Any]
    """`Effect` of the most needed columns."""
    heat: FloatArray | None
    """Importance of pixels, [side, side], where rows are images."""
    settings: list[tuple[str, str]]
