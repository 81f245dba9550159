"""The rows of a table from the most suspicious to the least, with suggestions and reasons."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mtbayes.fitting import Judgement
from mtbayes.tables.model import TableModel, TableRows
from mtbayes.types import Array, FloatArray

_TRUSTED = 0.05  # probability of being wrong, below which a row may judge others


class Findings(NamedTuple):
    """Rows from the most suspicious to the least."""

    order: Array
    """Places among the rows that were judged, from 0."""
    probability: FloatArray
    """That the target is wrong."""
    given: list[Any]
    suggested: list[Any]
    why: list[str]
    strangeness: list[tuple[float, float]]
    """What the rows are ordered by, upwards: minus suspicion, and how likely the target is."""
    influence: FloatArray | None = None
    """By how much the mean log loss of trusted rows would fall without the row; see `Harm`."""

    @property
    def trusted(self) -> Array:
        """Which of these rows may judge others: hardly wrong ones, or the less suspicious half."""
        return self.probability <= max(_TRUSTED, float(np.median(self.probability)))


def findings(
    model: TableModel, y: Array, judged: Judgement, expect: float | None = None
) -> Findings:
    """What the fits that have not seen a row say about its target.

    expect: the share of wrong rows; Bayes' rule turns the odds at one share into those at another
    """
    estimator = model.estimator
    share = estimator.law_.epsilon if expect is None else expect
    probability = judged.at(share)
    suggested = judged.suggestion(y, probability)
    crowd = getattr(estimator, "crowd_", None)
    several = crowd is not None and len(crowd.names) > 1
    words = _about_classes if model.schema.task == "classes" else _about_numbers
    likely, shown, why = words(estimator, judged.prediction, y, suggested, several)
    strange = -np.clip(judged.suspicion, 1e-300, 1 - 1e-16)  # the worst are all as strange
    order = np.lexsort((likely, strange))
    return Findings(
        order,
        probability[order],
        y[order].tolist(),
        [shown[i] for i in order],
        [why[i] for i in order],
        list(zip(strange[order].tolist(), likely[order].tolist(), strict=True)),
    )


def with_influence(model: TableModel, rows: TableRows, found: Findings) -> tuple[Findings, int]:
    """The harm of each row to those that are trusted, and how many these are.

    A trusted row judges itself too, and speaks for itself; what a suspect does is told by others.
    """
    judges = np.sort(found.order[found.trusted])
    harm = model.estimator.influence(rows.x[judges], rows.y[judges]).harm
    return found._replace(influence=harm[found.order]), len(judges)


def _about_classes(
    estimator: Any, probs: FloatArray, y: Array, suggested: Array, several: bool
) -> tuple[FloatArray, list[Any], list[str]]:
    """Probability of what is given, what is suggested, and why.

    several: people labelled each row, and what is given is their consensus
    """
    labels = estimator.classes_
    codes: Any = np.searchsorted(labels, y)
    true: Any = np.searchsorted(labels, suggested)
    why = []
    for p, given, other in zip(probs, codes, true, strict=True):
        text = f"going by the other rows, {labels[given]} is {_likely(p[given])} likely"
        best = int(p.argmax()) if other == given else int(other)
        if best != given:
            text += f", {labels[best]} {_likely(p[best])}"
        if best != other:
            text += (
                f"; but by what people said of it {labels[int(other)]} is likelier"
                if several
                else f"; but so few labels are wrong here that {labels[given]} stands"
            )
        why.append(text)
    return probs[np.arange(len(y)), codes], suggested.tolist(), why


def _about_numbers(
    estimator: Any, prediction: FloatArray, y: Array, suggested: Array, several: bool
) -> tuple[FloatArray, list[Any], list[str]]:
    """Minus the distance of what is given, what is suggested, and why."""
    mean, std = prediction.T
    distance, why = (y - mean) / std, []
    for off, m, s in zip(distance, mean, std, strict=True):
        side = "above" if off > 0 else "below"
        about = f"{_plain(m, 4)} ± {_plain(s, 2)}"
        why.append(f"{abs(off):.1f} sd {side} what the other rows suggest, {about}")
    return -np.abs(distance), [float(f"{v:.6g}") for v in suggested], why


def _plain(value: float, digits: int) -> str:
    """A number of so many digits, without an exponent where people would write none.

    >>> _plain(1234.5, 2), _plain(0.01234, 2), _plain(1.5e30, 2)
    ('1200', '0.012', '1.5e+30')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+0" in text else text


def _likely(p: float) -> str:
    if p < 1e-4:
        return "below 0.01 %"
    return "above 99.99 %" if p > 0.9999 else f"{100 * p:.3g} %"


def records(found: Findings, place: Array) -> list[dict[str, Any]]:
    """Rows from the most suspicious to the least, as a person reads them.

    place: where each was among the rows of the file, from 1
    """
    harm = found.influence
    return [
        {
            "row": int(place[found.order[i]]),
            "probability": round(float(found.probability[i]), 6),
            "given": found.given[i],
            "suggested": found.suggested[i],
            **({} if harm is None else {"influence": float(f"{harm[i]:.4g}")}),
            "why": found.why[i],
        }
        for i in range(len(found.order))
    ]
