"""A review: rows by suspicion, what was decided about them, and a model that learns along."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from threading import RLock, Thread
from typing import Any, NamedTuple

import numpy as np

from mtbayes import _check
from mtbayes.data.reading import open_table
from mtbayes.data.schema import check_target, learn_table
from mtbayes.errors import InvalidInput
from mtbayes.reviewing.applying import check_out
from mtbayes.reviewing.contents import keys
from mtbayes.reviewing.decisions import ACTIONS, Decision, Log, write_csv
from mtbayes.reviewing.opinion import (
    Opinion,
    is_audit_of_images,
    known,
    learn,
    of_images,
    opened,
    settled,
)
from mtbayes.reviewing.outlook import Outlook, outlook
from mtbayes.reviewing.raw import write_clean
from mtbayes.reviewing.values import Values
from mtbayes.reviewing.voices import Voices, aside, has_crowd
from mtbayes.tables.model import Settings, TableRows
from mtbayes.types import Array, FloatArray

EVERY = 20
"""Decisions between two refits."""


def log_of(data: Path) -> Path:
    """Where decisions about a file are kept, unless a person says otherwise."""
    return Path(f"{data}.review.jsonl")


class Exported(NamedTuple):
    """Files that a review ends in."""

    clean: Path
    decisions: Path
    summary: Path

    @classmethod
    def beside(cls, clean: Path) -> Exported:
        """The names of the others by that of the clean file."""
        stem = clean.name.removesuffix(".gz").rsplit(".", 1)[0]
        named = [clean.with_name(f"{stem}-{ending}") for ending in ("decisions.csv", "summary.md")]
        return cls(clean, *named)


class Review:
    """Decide about the rows of a file one by one, the most suspicious first.

    data: the file; target: the column that may be wrong in some rows
    model: a file of `mtbayes fit` that knows these rows, or the CSV of `mtbayes audit`, to begin
        with; without it the rows are audited now. Where it knows what several people said of the
        rows, `voices` has it, and rows stay ranked by that
    task: "classes" or "number"; guessed if left out
    learner, t, m, epochs, random_state: of the fits, as for `RobustClassifier`
    log: where decisions are kept; DATA.review.jsonl if none. A second review goes on from there
    top: rows to look at, at most
    every: decisions between two refits in the background; 0 for none

    The CSV of an audit of images, with target "given", is reviewed as it is ranked.

    `order` has the rows, numbered from 0: those decided, then the others by suspicion. `decide`
    and `undo` are on the disk when they return.
    """

    def __init__(
        self,
        data: Any,
        target: str,
        *,
        model: Any = None,
        task: str | None = None,
        learner: str = "auto",
        t: Any = "auto",
        m: Any = "auto",
        epochs: int | None = None,
        random_state: int = 0,
        log: Any = None,
        top: int | None = None,
        every: int = EVERY,
        verbose: bool = False,
    ) -> None:
        self.data = Path(data)
        self.settings = Settings(str(t), str(m), epochs, random_state, learner)
        self.settings.check()
        self.top = None if top is None else _check.count(top, "top", "It is a number of rows.")
        self.source = open_table(self.data)
        check_target(self.source.names, target)
        self.of_images = model is None and is_audit_of_images(self.source.names, target)
        model = opened(model)
        self.every = 0 if self.of_images or has_crowd(model) else every
        table = self.source.table()
        unused = aside(model, table.column_names, target)
        learned = table.drop_columns(unused)
        self.schema, coded = learn_table(learned, target, task, self.source.where)
        self.file_rows = table.num_rows
        table = table if coded.kept.all() else table.filter(coded.kept)
        self.rows = TableRows(table, 1 + np.flatnonzero(coded.kept), coded.x, coded.y)
        self.values = Values(self.schema, table.column(target), coded.y)
        self.voices = Voices.of(model, self.rows)
        self.keys = keys(table)
        self._place = {key: i for i, key in enumerate(self.keys)}
        self.log = Log(log_of(self.data) if log is None else Path(log), target)
        self.lock, self.version, self.error = RLock(), 0, ""
        self._fitting: Thread | None = None
        self._fits, self._since = 0, 0
        self.missing = [d for key, d in self.log.stack.holding().items() if key not in self._place]
        try:
            if self.of_images:
                first = of_images(self.rows, self.schema)
            elif model is None:
                first = self._learned(verbose)
            else:
                first = known(model, self.rows, self.schema)
        except BaseException:
            self.close()
            raise
        self._take(first)

    def __len__(self) -> int:
        return len(self.keys)

    # What is known.

    @property
    def decided(self) -> dict[int, Decision]:
        """Decisions that hold, by row, in the order they were made."""
        held = self.log.stack.holding()
        return {self._place[key]: d for key, d in held.items() if key in self._place}

    @property
    def fitting(self) -> bool:
        """Whether a fit goes on in the background."""
        return self._fitting is not None

    def state(self, row: int) -> str:
        """What was decided about a row, or "open"."""
        found = self.log.stack[self.keys[row]]
        return "open" if found is None else found.action

    def suggested(self, row: int) -> Any:
        """The most probable target of a row."""
        wrong, support = self.probability[row], self.opinion.support
        sure = 1.0 if support is None else support[row]
        other = wrong * sure > 1 - wrong
        return (self.opinion.alternative if other else self.rows.y)[row].item()

    def following(self, row: int, *, ahead: bool = False) -> int | None:
        """The row to look at after one: the most suspicious that is open; None if none is.

        ahead: the next less suspicious than the row itself, for one who has gone ahead
        Rows that were skipped come last.
        """
        rest = self.open[self.open != row]
        later = rest[self._rank[rest] > self._rank[row]] if ahead else rest
        skipped = [r for r, d in self.decided.items() if d.action == "skip" and r != row]
        return next((int(r) for some in (later, rest, skipped) for r in some), None)

    # What is done.

    def decide(self, row: int, action: str, value: Any = None) -> Decision:
        """Decide about a row.

        action: "correct" the target to a value, "keep" it, "drop" the row, or "skip" it for now
        value: for "correct", as the file is to have it; the suggestion if left out
        """
        _check.known("action", action, ACTIONS)
        if not 0 <= row < len(self):
            raise InvalidInput(f"row must be one of 0 to {len(self) - 1}, got {row}.")
        with self.lock:
            given = self.values.given[row]
            text = given
            if action == "correct":
                text = (
                    self.values.text(self.suggested(row)) if value is None else str(value).strip()
                )
                if self.values.parse(text) == self.rows.y[row]:
                    action, text = "keep", given
            elif value is not None:
                raise InvalidInput(f"value must be left out for {action!r}, got {value!r}.")
            decision = Decision(self.keys[row], int(self.rows.place[row]), action, given, text)
            self.log.decide(decision)
            self._changed()
            self._since += action != "skip"
            if self.every and self._since >= self.every:
                self.refit(wait=False)
            return decision

    def undo(self) -> int | None:
        """Take the last decision back; returns its row, None where there is none."""
        with self.lock:
            last = self.log.undo(self._place)  # not about a row that has changed since
            if last is None:
                return None
            self._since = max(0, self._since - (last.action != "skip"))
            self._changed()
            return self._place[last.key]

    def refit(self, *, wait: bool = True) -> None:
        """Learn from what was decided, and rank what is left anew.

        wait: until it is done; else it is done in the background, while decisions go on
        """
        with self.lock:
            if self._fitting is None:
                self._since, self.error = 0, ""
                self._fitting = Thread(target=self._refit, daemon=True)
                self._fitting.start()
                self.version += 1
            running = self._fitting
        if wait:
            running.join()
            if self.error:
                raise InvalidInput(self.error)

    def _refit(self) -> None:
        error, found = "", None
        try:
            found = self._learned(verbose=False, earlier=self.opinion)
        except Exception as failed:  # told on the page; what was known before stays
            error = " ".join(str(failed).split()) or type(failed).__name__
        with self.lock:
            self._fitting, self.error = None, error
            if found is not None:
                self._fits += 1
                self._take(found)
            self.version += 1
            if self.every and self._since >= self.every:  # decided meanwhile
                self.refit(wait=False)

    def _learned(self, verbose: bool, earlier: Opinion | None = None) -> Opinion:
        if self.of_images:
            raise InvalidInput(
                "rows must have columns to learn from, got paths of images alone. Write the clean "
                "file, and audit that with --images path --target given."
            )
        if self.voices is not None:
            raise InvalidInput(
                "rows must have one target each to be learned anew, got labels of several people, "
                "by all of which they are ranked. Write the clean file, and fit that."
            )
        with self.lock:
            decided = self.decided
        y, certain, kept = settled(self.schema, self.rows.y, decided, self.values.parse)
        found = learn(self.settings, self.schema, self.rows, y, certain, kept, verbose=verbose)
        told = [row for row, decision in decided.items() if decision.action == "keep"]
        return found if earlier is None else found.recalling(earlier, told)

    def _take(self, opinion: Opinion) -> None:
        self.opinion = opinion
        self._rank = np.empty(len(self), int)
        self._rank[opinion.order] = np.arange(len(self))
        self._changed()

    def _changed(self) -> None:
        """Count and order anew."""
        decided = self.decided
        done = [row for row, d in decided.items() if d.action != "skip"]
        waiting = [row for row, d in decided.items() if d.action == "skip"]
        taken = np.zeros(len(self), bool)
        taken[done] = True
        left = self.opinion.order[~taken[self.opinion.order]]
        ranked = left[~np.isin(left, waiting)]
        wrong = [decided[row].wrong for row in done]
        self.outlook: Outlook
        self.probability: FloatArray
        self.outlook, self.probability = outlook(self.opinion, wrong, left)
        if self.top is not None:
            ranked = ranked[: max(0, self.top - len(done) - len(waiting))]
        self.open: Array = ranked
        self.order: Array = np.concatenate([np.array(done, int), ranked, np.array(waiting, int)])
        self.version += 1

    def targets(self) -> tuple[Array, Array]:
        """Targets as decided, [n], and which rows are trusted: certain, or hardly wrong."""
        y, certain, kept = settled(self.schema, self.rows.y, self.decided, self.values.parse)
        return y, (certain | (self.probability < 0.05)) & kept

    # Out.

    def export(self, out: Any) -> Exported:
        """Write the clean file, the decisions as CSV, and a summary beside it."""
        paths = Exported.beside(Path(out))
        check_out(self.data, paths.clean)
        with self.lock:
            by_row = {int(self.rows.place[i]) - 1: d for i, d in self.decided.items()}
            write_clean(self.source, self.schema.target, by_row, paths.clean, self.file_rows)
            write_csv(self.schema.target, self.decided.values(), paths.decisions)
            paths.summary.write_text(self.summary(), encoding="utf-8")
            for path in paths:
                self.log.export(path)
            self.version += 1
        return paths

    def counts(self) -> dict[str, int]:
        """How many rows were decided, by action."""
        found = Counter(d.action for d in self.decided.values())
        return {action: found[action] for action in ACTIONS}

    def summary(self) -> str:
        """What was decided, in words."""
        counts, view = self.counts(), self.outlook
        lines = [
            f"# Review of {self.data.name}",
            f"- Target: {self.schema.target}. Rows: {len(self)}.",
            f"- Looked at: {view.looked} rows; {counts['correct']} corrected, {counts['keep']} "
            f"kept, {counts['drop']} dropped. Skipped: {counts['skip']}.",
            f"- Estimated share of wrong rows before the review: {100 * view.share:.1f} %; wrong "
            f"rows that probably remain: {view.remaining:.0f}.",
            f"- {view.sentence}",
        ]
        changes = Counter(
            (d.given.strip(), d.value) for d in self.decided.values() if d.action == "correct"
        )
        if changes and self.schema.task == "classes":
            lines += ["", "| given | corrected to | rows |", "|---|---|---|"]
            lines += [
                f"| {_cell(a)} | {_cell(b)} | {count} |"
                for (a, b), count in changes.most_common(20)
            ]
        return "\n".join(lines) + "\n"

    def close(self) -> None:
        """Let go of the log."""
        self.log.close()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
