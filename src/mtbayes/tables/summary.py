"""What was learned from a table, in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbayes.fitting import Judgement
from mtbayes.tables.model import TableModel, TableRows


def summary(model: TableModel, rows: TableRows) -> dict[str, Any]:
    """What was learned, in numbers."""
    estimator, schema = model.estimator, model.schema
    share = estimator.contamination_
    return {
        "task": schema.task,
        "target": schema.target,
        "rows": len(rows.y),
        "columns": {column.name: type(column).__name__.lower() for column in schema.columns},
        "dropped": dict(schema.dropped),
        "gaps": gaps(rows, [column.name for column in schema.columns]),
        "t": estimator.t_,
        "wrong": {
            "share": share.value,
            "low": share.low,
            "high": share.high,
            "at_least": share.at_least,
        },
        "scores": unseen_scores(model, rows, model.estimator.fitted_.training),
    }


def gaps(rows: TableRows, names: list[str]) -> dict[str, int]:
    """Cells without a value, by column."""
    counts = {name: rows.table.column(name).null_count for name in names}
    return {name: count for name, count in counts.items() if count}


def unseen_scores(model: TableModel, rows: TableRows, judged: Judgement) -> dict[str, float]:
    """Scores of rows by fits that have not seen them; empty where rows are too few for that.

    Wrong rows are among them. So each score is given twice: for all rows, which is too bad, and for
    rows weighted by the probability that they are right, which is as good as that probability.
    """
    estimator = model.estimator
    learner = estimator.fitted_.learner.name
    path = {e["t"]: e["score"] for e in estimator.score_path_ if e["learner"] == learner}
    if not path:
        return {}
    good, predicted = 1 - judged.outlier_probability, judged.prediction
    scores: dict[str, float] = {}
    if model.schema.task == "classes":
        hit = estimator.classes_[predicted.argmax(axis=1)] == rows.y
        scores["accuracy"] = _mean(hit, good)
        scores["accuracy of all rows"] = float(hit.mean())
        scores["log probability"] = path[estimator.t_]
    else:
        off = np.abs(rows.y - predicted[:, 0])
        scores["absolute error"] = _mean(off, good)
        scores["absolute error of all rows"] = float(off.mean())
        scores["within 1.64 sd"] = _mean(off <= 1.6449 * predicted[:, 1], good)
        scores["log density"] = path[estimator.t_] - float(np.log(estimator.targets_.scale))
    return scores


def _mean(values: Any, weight: Any) -> float:
    return float(np.average(values, weights=weight if weight.sum() > 0 else None))
