"""Why rows look wrong, in the words and cells that a person can check."""

from __future__ import annotations

from mtbayes.tables.cells import with_cells
from mtbayes.tables.findings import Findings
from mtbayes.tables.labels import with_labels
from mtbayes.tables.model import TableModel, TableRows
from mtbayes.tables.words import with_words

EXPLAINED = 50
"""Rows that are looked at, the most suspicious ones."""


def with_reasons(
    model: TableModel, rows: TableRows, found: Findings, count: int = EXPLAINED
) -> Findings:
    """The same with what speaks for or against the targets of the first rows.

    That is what each of several people said, their words, their cells.
    """
    for more in (with_labels, with_words, with_cells):
        found = more(model, rows, found, count)
    return found
