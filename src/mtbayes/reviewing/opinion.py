"""What a model thinks of rows, given all that a person has decided about them so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv

from mtbayes.data.safe import safe_text
from mtbayes.data.schema import Schema
from mtbayes.errors import InvalidInput
from mtbayes.reviewing.decisions import Decision
from mtbayes.tables.findings import findings
from mtbayes.tables.judging import judge
from mtbayes.tables.model import Settings, TableModel, TableRows
from mtbayes.types import Array, FloatArray

LEARNED = 50_000
"""Rows that are learned from, at most; the others are judged by what was learned."""
_EACH = 2  # rows of every class among them, at least
_AUDIT = ("rank", "row", "probability", "given", "suggested", "why")


class Opinion(NamedTuple):
    """Of all rows of a file that have a target, [n] each.

    order: rows from the most suspicious to the least
    suspicion: probability that the target is wrong if half of all rows were
    alternative: what it most likely is if it is wrong; support: how likely then, None: in any case
    prediction: probabilities of the classes [n, C], or mean and standard deviation [n, 2]; or None
    why: a sentence; labels: the classes, None for numbers
    share: of wrong rows, as first estimated
    """

    order: Array
    suspicion: FloatArray
    alternative: Array
    support: FloatArray | None
    prediction: FloatArray | None
    why: list[str]
    labels: list[Any] | None
    share: float

    @classmethod
    def of(cls, model: TableModel, y: Array, judged: Any) -> Opinion:
        """From what fits that have not seen a row say of it."""
        found = findings(model, y, judged)
        why = [""] * len(y)
        for place, text in zip(found.order, found.why, strict=True):
            why[place] = text
        labels = getattr(model.estimator, "classes_", None)
        return cls(
            found.order,
            judged.suspicion,
            judged.alternative,
            judged.support,
            judged.prediction,
            why,
            None if labels is None else labels.tolist(),
            float(model.estimator.contamination_.value),
        )

    def recalling(self, earlier: Opinion, told: list[int]) -> Opinion:
        """The same, with an earlier suspicion of rows that a fit was told to be right.

        It says nothing of them, but a person may take back what it was told.
        """
        suspicion, place = self.suspicion.copy(), np.empty(len(self.order), int)
        suspicion[told] = earlier.suspicion[told]
        place[self.order] = np.arange(len(place))
        return self._replace(suspicion=suspicion, order=np.lexsort((place, -suspicion)))

    def probability(self, share: float) -> FloatArray:
        """That each target is wrong where so large a share of all rows is, [n]."""
        odds = np.clip(self.suspicion, 1e-300, 1 - 1e-12)
        wrong = odds * share
        return wrong / (wrong + (1 - odds) * (1 - share))


def settled(
    schema: Schema, y: Array, decisions: dict[int, Decision], value: Callable[[str], Any]
) -> tuple[Array, Array, Array]:
    """Targets as decided, which of them are certain, and which rows are to be learned from."""
    targets = y.tolist()
    certain, kept = np.zeros(len(y), bool), np.ones(len(y), bool)
    for row, decision in decisions.items():
        certain[row] = decision.certain
        kept[row] = decision.action != "drop"
        if decision.action == "correct":
            targets[row] = value(decision.value)
    kind = None if schema.task == "classes" else float
    return np.array(targets, kind), certain, kept


def learn(
    settings: Settings,
    schema: Schema,
    rows: TableRows,
    y: Array,
    certain: Array,
    kept: Array,
    *,
    verbose: bool = False,
) -> Opinion:
    """Fit rows, those that are certain as such, and judge all targets as they were given.

    y: targets as decided. Rows that were dropped or corrected are judged as they came, so that they
    can be looked at again, and taken back; only a class that no row has any more says nothing.
    """
    which = _some(y, certain, kept, settings.seed, classes=schema.task == "classes")
    estimator = settings.estimator(schema.task, verbose=verbose)
    estimator.fit(rows.x[which], y[which], trusted=certain[which])
    place = np.zeros(len(y), int)
    place[which] = np.arange(len(which))
    fitted, given = estimator.fitted_, rows.y
    known = np.isin(given, y[which]) if schema.task == "classes" else np.ones(len(y), bool)
    new = np.ones(len(y), bool)
    new[which] = False
    new = (new | (y != given)) & known
    judged = fitted.training.take(place)
    if new.any():
        judged = judged.beside(fitted.judge(rows.x[new], given[new]), new)
    shown = np.where(known, given, np.where(kept, y, y[which][0]))
    return Opinion.of(TableModel(estimator, schema), shown, judged)


def _some(y: Array, certain: Array, kept: Array, seed: int, *, classes: bool) -> Array:
    """Rows to learn from: all, or those that are certain, some of every class, and others."""
    if kept.sum() <= LEARNED:
        return np.flatnonzero(kept)
    order = np.random.default_rng(seed).permutation(np.flatnonzero(kept))
    first = certain[order].copy()
    if classes:
        for label in np.unique(y[order]):
            first[np.flatnonzero(y[order] == label)[:_EACH]] = True
    return np.sort(np.concatenate([order[first], order[~first]])[:LEARNED])


def opened(model: Any) -> TableModel | Path | None:
    """A model, from its file or as it is; or the path of an audit's CSV."""
    if model is None or isinstance(model, TableModel):
        return model
    path = Path(model)
    return path if path.suffix.lower() == ".csv" else TableModel.load(path)


def known(model: TableModel | Path, rows: TableRows, schema: Schema) -> Opinion:
    """What a model or an audit's CSV says of rows."""
    if isinstance(model, Path):
        return _audited(model, rows, schema)
    if model.schema.target != schema.target or model.schema.task != schema.task:
        raise InvalidInput(
            f"MODEL must be one of the {schema.task} of {schema.target!r}, got one of the "
            f"{model.schema.task} of {model.schema.target!r}. Fit another, or leave it out."
        )
    coded = rows._replace(x=model.schema.code(rows.table))
    judged, _ = judge(model, coded)
    return Opinion.of(model, rows.y, judged)


def _audited(path: Path, rows: TableRows, schema: Schema) -> Opinion:
    """An audit's list, which ranks the rows of this file."""
    as_text = {name: pa.string() for name in ("given", "suggested", "why")}
    how = pa.csv.ConvertOptions(column_types=as_text)  # "01" is a label, and not 1
    table = pa.csv.read_csv(path, convert_options=how)
    if tuple(table.column_names[: len(_AUDIT)]) != _AUDIT:
        raise InvalidInput(
            f"MODEL must be a file of `mtbayes fit` or `mtbayes audit`, got {path}, whose columns "
            f"do not begin with {', '.join(_AUDIT)}. Leave it out to have the rows audited."
        )
    place = {int(row): i for i, row in enumerate(rows.place)}
    row = table.column("row").to_pylist()
    if sorted(row) != sorted(place):
        raise InvalidInput(
            f"{path} must rank the {len(place)} rows of the file, got other rows. Audit it anew."
        )
    return _ranked(np.array([place[r] for r in row]), table, rows, schema)


def is_audit_of_images(names: Sequence[str], target: str) -> bool:
    """Whether a file to review is what `mtbayes audit` says of images, the most suspicious first.

    Images have no columns to learn from here: they are ranked as the audit ranked them.
    """
    return tuple(names[: len(_AUDIT)]) == _AUDIT and "path" in names and target == "given"


def of_images(rows: TableRows, schema: Schema) -> Opinion:
    """What an audit of images says, which is the very file under review."""
    given = rows.table
    shares = given.column("probability").cast(pa.float64())
    table = given.set_column(given.column_names.index("probability"), "probability", shares)
    return _ranked(np.arange(len(rows.y)), table, rows, schema)


def _ranked(order: Array, table: Any, rows: TableRows, schema: Schema) -> Opinion:
    """From the columns of an audit; order: the rows that its lines are about."""
    share = np.empty(len(order))
    share[order] = table.column("probability").to_numpy()
    suggested = np.empty(len(order), object)
    suggested[order] = table.column("suggested").to_pylist()
    why = np.empty(len(order), object)
    why[order] = table.column("why").to_pylist()
    mean = float(np.clip(share.mean(), 1e-6, 0.5))
    odds = np.clip(share, 1e-12, 1 - 1e-12)
    odds = odds / (1 - odds) * (1 - mean) / mean
    numbers = schema.task == "number"
    labels = np.unique(rows.y).tolist()
    return Opinion(
        order,
        odds / (1 + odds),
        np.array([float(v) for v in suggested] if numbers else _values(suggested, labels)),
        None if numbers else np.ones(len(order)),
        None,
        why.tolist(),
        None if numbers else labels,
        mean,
    )


def _values(suggested: Any, labels: list[Any]) -> list[Any]:
    """Labels that an audit spells, with formulas marked or not."""
    written = {safe_text(str(label)): label for label in labels}
    written |= {str(label): label for label in labels}
    strange = next((text for text in suggested if text not in written), None)
    if strange is not None:
        raise InvalidInput(
            f"an audit must suggest values of the target, got {strange!r}. Audit the file anew."
        )
    return [written[text] for text in suggested]
