"""How many wrong rows were found, how many probably remain, and how long it takes to find them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mtbayes.reviewing.opinion import Opinion
from mtbayes.types import Array, FloatArray

ENOUGH = 0.95
"""Of the wrong rows, that a person may be content with."""
_ROUNDS = 200
_POINTS = 200  # of a curve, at most, behind the last decision


class Outlook(NamedTuple):
    """Where a review stands.

    looked, found: rows that were decided, and those of them that were wrong
    share: of wrong rows among all; remaining: wrong rows that are probably left
    curve: wrong rows found after each row looked at; ahead: (rows, found) as it will probably go on
    more: rows to look at until about 95 % of the wrong rows are found
    """

    looked: int
    found: int
    share: float
    remaining: float
    curve: list[int]
    ahead: list[tuple[int, float]]
    more: int

    @property
    def sentence(self) -> str:
        """How far it is."""
        total = self.found + self.remaining
        if total < 0.5:
            return "Probably no row is wrong."
        reached = self.found / total
        if self.more == 0:
            left = round(self.remaining)
            rest = f"about {left} {'is' if left == 1 else 'are'} left" if left else "none is left"
            return f"You have found about {100 * min(reached, 1):.0f} % of the wrong rows; {rest}."
        rows = f"{self.more} more row{'s' if self.more > 1 else ''}"
        return f"After {rows} you will have found about {100 * ENOUGH:.0f} % of the wrong ones."


def outlook(opinion: Opinion, wrong: list[bool], left: Array) -> tuple[Outlook, FloatArray]:
    """Where a review stands, and the probability of each row to be wrong, [n].

    wrong: of the rows that were decided, in order, whether each was wrong
    left: rows that are not decided, the most suspicious first

    Rows that were decided say what share of all is wrong, too: ε is where the wrong ones that were
    found and those that Bayes' rule expects among the others add up to it,

        n·ε = found + Σ_left P(wrong | ε),

    the fixed point of EM for rows of which some are known. Which rows were looked at depends on
    what was known of them all, so that nothing else need be corrected for.
    """
    n, found = len(opinion.suspicion), sum(wrong)
    share = float(np.clip(opinion.share, 1 / max(n, 2), 0.9))
    for _ in range(_ROUNDS):
        expected = found + float(opinion.probability(share)[left].sum())
        new = float(np.clip(expected / n, 1e-9, 0.95))
        if abs(new - share) < 1e-7:
            break
        share = new
    probability = opinion.probability(share)
    ahead = np.cumsum(probability[left])
    remaining = float(ahead[-1]) if len(ahead) else 0.0
    needed = ENOUGH * (found + remaining) - found
    more = int(np.searchsorted(ahead, needed - 1e-9)) + 1 if needed > 0 else 0
    more = min(more, len(ahead))
    curve = np.cumsum(wrong, dtype=int).tolist()
    stop = min(len(ahead), max(2 * more, 50))
    places = np.unique(np.linspace(0, max(stop, 1) - 1, min(stop, _POINTS)).astype(int))
    future = [(len(wrong) + int(i) + 1, found + float(ahead[i])) for i in places]
    return Outlook(len(wrong), found, share, remaining, curve, future, more), probability
