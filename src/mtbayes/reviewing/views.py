"""What the page shows, as plain values: the review as a whole, a stretch of its list, one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbayes.reviewing.contents import texts
from mtbayes.reviewing.pictures import Files, pictures
from mtbayes.reviewing.session import Review
from mtbayes.tables.looks import Looks, like

_NEAR = 3  # rows of either class beside a row
_CANDIDATES = 9  # values that have a key of their own
_WIDE = 1.6449  # standard deviations that hold 90 % of a Gaussian
_FEW = 3  # columns of a row that stands beside another
STATES = ["all", "open", "correct", "keep", "drop", "skip"]


class Views:
    """A review for a page; images: a column of paths, or a folder."""

    def __init__(self, review: Review, images: str | None = None) -> None:
        self.review, schema, table = review, review.schema, review.rows.table
        self.looks = Looks(schema, review.rows.x)
        images = images or ("path" if review.of_images else None)
        self.pictures = pictures(table, schema, review.data, images)
        values, code = np.unique(np.array(review.values.given), return_inverse=True)
        self._given: tuple[list[str], Any] = values.tolist(), code
        self._others: tuple[list[str], Any] = [], code
        self._opinion: Any = None
        self.cells = {
            name: [cell.replace("\x00", "") for cell in texts(table.column(name))]
            for name in table.column_names
            if name != schema.target and not self._is_person(name)
        }

    def _is_person(self, column: str) -> bool:
        """Whether a column holds labels of a person, which are shown by themselves."""
        voices = self.review.voices
        return voices is not None and column in {str(name) for name in voices.people}

    def overview(self) -> dict[str, Any]:
        """The review as a whole."""
        review = self.review
        with review.lock:
            view = review.outlook
            labels = review.opinion.labels
            return {
                "version": review.version,
                "data": review.data.name,
                "target": review.schema.target,
                "task": review.schema.task,
                "classes": None if labels is None else [review.values.text(v) for v in labels],
                "rows": len(review),
                "listed": len(review.order),
                "first": next(iter(review.open.tolist()), None),
                "counts": review.counts(),
                "undo": bool(review.decided),
                "fitting": review.fitting,
                "error": review.error,
                "missing": len(review.missing),
                "every": review.every,
                "share": view.share,
                "looked": view.looked,
                "found": view.found,
                "remaining": view.remaining,
                "sentence": view.sentence,
                "curve": view.curve,
                "ahead": view.ahead,
                "images": self.pictures is not None,
            }

    def listed(self, begin: int, count: int, state: str, text: str) -> dict[str, Any]:
        """A stretch of the list of rows, those in a state and with a text in their targets."""
        review = self.review
        with review.lock:
            rows = self._filtered(state, text)
            some = rows[begin : begin + count].tolist()
            return {
                "version": review.version,
                "total": len(rows),
                "begin": begin,
                "rows": [self._line(row) for row in some],
            }

    def place(self, row: int, state: str, text: str) -> int | None:
        """Where a row is in the list."""
        with self.review.lock:
            found = np.flatnonzero(self._filtered(state, text) == row)
            return int(found[0]) if len(found) else None

    def _filtered(self, state: str, text: str) -> Any:
        review = self.review
        rows = review.order
        if state != "all":
            picked = [row for row, d in review.decided.items() if d.action == state]
            rows = review.open if state == "open" else rows[np.isin(rows, picked)]
        return rows[self._with(text)[rows]] if text else rows

    def _with(self, text: str) -> Any:
        """Which rows have a text in what is given or suggested, or as their number, [n]."""
        review, low = self.review, text.lower()
        if self._opinion is not review.opinion:  # each value is looked at once
            self._opinion = review.opinion
            labels, code = np.unique(review.opinion.alternative, return_inverse=True)
            self._others = [review.values.text(v) for v in labels.tolist()], code
        found = review.rows.place == int(text) if text.isdecimal() else np.zeros(len(review), bool)
        for values, code in (self._given, self._others):
            found = found | np.array([low in value.lower() for value in values])[code]
        return found

    def _line(self, row: int) -> dict[str, Any]:
        review = self.review
        found = review.log.stack[review.keys[row]]
        to = review.values.text(review.suggested(row)) if found is None else found.value
        return {
            "row": row,
            "place": int(review.rows.place[row]),
            "state": "open" if found is None else found.action,
            "given": review.values.given[row].strip(),
            "value": to,
            "wrong": float(review.probability[row]),
        }

    def row(self, row: int) -> dict[str, Any]:
        """Everything about a row."""
        review = self.review
        with review.lock:
            opinion, values = review.opinion, review.values
            numbers = review.schema.task == "number"
            y, trusted = review.targets()
            own, suggested = review.rows.y[row].item(), review.suggested(row)
            other = suggested if suggested != own else opinion.alternative[row].item()
            given, beside = (like(y, v, trusted, numbers=numbers) for v in (own, other))
            columns = self.looks.columns(
                row, {name: cells[row] for name, cells in self.cells.items()}, given, beside
            )
            few = [c.name for c in columns[:_FEW] if c.given is not None]
            wrong = float(review.probability[row])
            order = np.flatnonzero(review.order == row)
            at = int(order[0]) if len(order) else 0
            around = [at - 1, at + 1]
            return {
                **self._line(row),
                "version": review.version,
                "suggested": values.text(suggested),
                "same": suggested == own,
                "wrong": wrong,
                "chance": self._chance(row, suggested, own, wrong),
                "why": opinion.why[row],
                "voices": self._voices(row),
                "interval": self._interval(row) if numbers else None,
                "candidates": self._candidates(row, own, wrong),
                "columns": [c._asdict() | {"unusual": c.unusual} for c in columns],
                "near": [
                    self._near(row, own, given, few),
                    *([] if other == own else [self._near(row, other, beside, few)]),
                ],
                "image": self._has_image(row),
                "previous": None if around[0] < 0 else int(review.order[around[0]]),
                "next": int(review.order[around[1]]) if around[1] < len(review.order) else None,
            }

    def _voices(self, row: int) -> list[dict[str, Any]]:
        """Who gave which label, and how good each is; none where each row had one target."""
        voices, text = self.review.voices, self.review.values.text
        return [] if voices is None else [v._asdict() for v in voices.said(row, text)]

    def _chance(self, row: int, suggested: Any, own: Any, wrong: float) -> float | None:
        """Probability of what is suggested; None for a number, which has an interval."""
        if suggested == own:
            return 1 - wrong
        support = self.review.opinion.support
        return None if support is None else wrong * float(support[row])

    def _interval(self, row: int) -> list[str] | None:
        """Ends of the interval that holds a number with 90 %."""
        prediction = self.review.opinion.prediction
        if prediction is None:
            return None
        mean, std = prediction[row]
        return [self.review.values.text(mean + side * _WIDE * std) for side in (-1, 1)]

    def _candidates(self, row: int, own: Any, wrong: float) -> list[dict[str, Any]]:
        """Other values than the given one, the most probable first."""
        opinion, text = self.review.opinion, self.review.values.text
        if opinion.labels is None or opinion.prediction is None:
            other = opinion.alternative[row].item()
            return [] if other == own else [{"value": text(other), "chance": None}]
        probs = opinion.prediction[row]
        best = [int(i) for i in np.argsort(-probs) if opinion.labels[i] != own]
        total = float(probs[best].sum()) or 1.0
        return [
            {"value": text(opinion.labels[i]), "chance": wrong * float(probs[i]) / total}
            for i in best[:_CANDIDATES]
        ]

    def _near(self, row: int, value: Any, group: Any, few: list[str]) -> dict[str, Any]:
        """Trusted rows of a class that are most like a row."""
        review = self.review
        return {
            "value": review.values.text(value),
            "columns": few,
            "rows": [
                {
                    "row": other,
                    "place": int(review.rows.place[other]),
                    "value": self._target(other),
                    "cells": [self.cells[name][other] for name in few],
                    "image": self._has_image(other),
                }
                for other in self.looks.nearest(row, group, _NEAR)
            ],
        }

    def _target(self, row: int) -> str:
        found = self.review.log.stack[self.review.keys[row]]
        return self.review.values.given[row].strip() if found is None else found.value

    def _has_image(self, row: int) -> bool:
        if isinstance(self.pictures, Files):
            return bool(self.pictures.cells[row].strip("\x00 "))
        return self.pictures is not None
