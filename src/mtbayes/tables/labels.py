"""What several people said of the rows that look wrong."""

from __future__ import annotations

from typing import Any

from mtbayes.tables.findings import Findings
from mtbayes.tables.judging import place_of
from mtbayes.tables.model import TableModel, TableRows

_NAMED = 3  # people of one label, and labels of one row, that are named


def with_labels(model: TableModel, rows: TableRows, found: Findings, count: int) -> Findings:
    """The same with who said what in the reasons of the first rows, where several people did.

    The consensus of a row may be what nobody said of it, and the labels are then all that speaks
    against it.
    """
    crowd = getattr(model.estimator, "crowd_", None)
    if crowd is None or len(crowd.names) == 1:
        return found
    why, place = list(found.why), place_of(model, rows)
    for i, row in enumerate(found.order[:count].tolist()):
        if place[row] >= 0:
            why[i] = f"{why[i]}; {said(crowd.spoken(int(place[row])))}"
    return found._replace(why=why)


def said(spoken: list[tuple[Any, Any]]) -> str:
    """Labels and who gave them, those of most people first.

    >>> said([("ann", "red"), ("bob", "rose"), ("cem", "rose")])
    'rose by bob, cem; red by ann'
    >>> said([("ann", 14.25), ("bob", 1400.0)])
    '14.25 by ann; 1400 by bob'
    """
    who: dict[str, list[str]] = {}
    for name, label in spoken:
        text = f"{label:.6g}" if isinstance(label, float) else str(label)
        who.setdefault(text, []).append(str(name))
    order = sorted(who, key=lambda text: -len(who[text]))
    told = [f"{text} by {', '.join(_few(who[text]))}" for text in order]
    return "; ".join(_few(told))


def _few(words: list[str]) -> list[str]:
    """The first of them, and how many more there are.

    >>> _few(["ann", "bob", "cem", "dee", "eve"])
    ['ann', 'bob', 'cem', '2 more']
    """
    more = len(words) - _NAMED
    return words if more <= 0 else [*words[:_NAMED], f"{more} more"]
