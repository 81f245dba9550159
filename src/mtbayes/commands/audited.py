"""What `audit` says of rows, whether they were held in memory or read as they were needed."""

from __future__ import annotations

from typing import Any, NamedTuple


class Audited(NamedTuple):
    """What a person is told of all rows.

    order: that of the file written
    wrong: the estimated share of wrong ones; likely: how many are more likely wrong than right
    suspects: the first of the ranked rows
    trusted: rows that judge the harm of others, if any do
    """

    task: str
    order: str
    rows: int
    wrong: Any
    likely: int
    suspects: list[dict[str, Any]]
    trusted: int | None = None


def beside(said: list[dict[str, Any]], own: Any) -> Any:
    """What is said of rows, and behind it their own columns, as one table."""
    import pyarrow as pa

    from mtbayes.data.reading import unique

    told = pa.Table.from_pylist(said)
    names, _ = unique([*told.column_names, *own.column_names])
    columns = [*told.columns, *(_flat(column) for column in own.columns)]
    return pa.table(columns, names=list(names))


def _flat(column: Any) -> Any:
    """A column that CSV can hold."""
    import pyarrow as pa

    return pa.array(map(str, column.to_pylist())) if pa.types.is_nested(column.type) else column
