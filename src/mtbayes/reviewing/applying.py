"""Decisions beside the rows that they are about, wherever those are now."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mtbayes.data.reading import Source
from mtbayes.data.schema import Schema, check_target
from mtbayes.errors import InvalidInput
from mtbayes.reviewing.contents import keys
from mtbayes.reviewing.decisions import Decision
from mtbayes.reviewing.opinion import settled
from mtbayes.reviewing.raw import kind_of, write_clean
from mtbayes.reviewing.values import parse
from mtbayes.tables.model import TableRows
from mtbayes.types import Array


def matched(
    found: list[str], decisions: dict[str, Decision]
) -> tuple[dict[int, Decision], list[Decision]]:
    """Decisions by the row they are about, from 0, and those whose row is not there."""
    place = {key: i for i, key in enumerate(found)}
    here = {place[key]: decision for key, decision in decisions.items() if key in place}
    return here, [decision for key, decision in decisions.items() if key not in place]


def missing(path: Path, gone: list[Decision], total: int) -> str:
    """What to say of decisions whose rows are not in a file."""
    rows = ", ".join(str(decision.row) for decision in gone[:5])
    return (
        f"{len(gone)} of {total} decisions are about rows that are not in {path} as they were "
        f"(row {rows}{' and more' if len(gone) > 5 else ''} then): changed or gone since. They are "
        "left out"
    )


def apply(
    source: Source, target: str, decisions: dict[str, Decision], out: Path
) -> tuple[dict[int, Decision], list[Decision]]:
    """Write a file with decisions followed; returns those that were, and those without a row."""
    check_target(source.names, target)
    check_out(source.path, out)
    table = source.table()
    here, gone = matched(keys(table), decisions)
    write_clean(source, target, here, out, table.num_rows)
    return here, gone


def check_out(data: Path, out: Path) -> None:
    """A clean file is of the kind that the data are, and not the data themselves."""
    if out.exists() and out.samefile(data):
        raise InvalidInput(
            f"the clean file must be another than {data}: decisions are about its rows as they "
            "are. Name another, and move it there when the review is done."
        )
    kind = kind_of(data)
    tables = {".parquet": (".parquet",), ".feather": (".feather", ".arrow")}
    endings = tables.get(kind)
    if endings and out.suffix.lower() not in endings:
        raise InvalidInput(
            f"the clean file must be of the kind that {data} is, with the ending {endings[0]}, got "
            f"{out}. Rename it."
        )
    if not endings and out.suffix.lower() in (".parquet", ".feather", ".arrow"):
        raise InvalidInput(f"the clean file must be text as {data} is, got {out}. Rename it.")


def certain_rows(
    schema: Schema, rows: TableRows, decisions: dict[str, Decision]
) -> tuple[TableRows, Array, list[Decision]]:
    """Rows as decided, dropped ones left out, and which are certain; decisions without a row."""
    here, gone = matched(keys(rows.table), decisions)
    y, certain, kept = settled(schema, rows.y, here, lambda text: parse(schema, text))
    which = np.flatnonzero(kept)
    return rows._replace(y=y).take(which), certain[which], gone
