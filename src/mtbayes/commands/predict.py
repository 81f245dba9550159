"""`mtbayes predict`: rows of a file of any size in, predictions out, a batch at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import TABLES, new_file, writer
from mtbayes.commands.screen import Screen, open_share, usage

if TYPE_CHECKING:
    from mtbayes.tables.model import TableModel

ROW = "row"
"""What --id is where the number of a row is wanted, counted from 1 below the header."""


def predict(
    model: options.ModelFile,
    data: options.Data,
    out: Annotated[
        Path | None, options.out("CSV, Parquet or Feather by its ending; stdout if none.")
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Probability that low to high holds the number.")
    ] = 0.9,
    name: Annotated[
        str | None,
        typer.Option(
            "--id", help="A column of DATA to write beside predictions; row for the row's number."
        ),
    ] = None,
    safe_cells: options.SafeCells = False,
    force: options.Force = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Predict the rows of a file: class probabilities, or mean, sd and an interval.

    Predictions are the same whatever --seed is: the model's file holds the members.

    Example: mtbayes predict houses.mtb new.csv -o predictions.csv
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug) as screen:
        open_share(coverage, "coverage", "0.9 is the default.")
        if out is not None:
            new_file(out, force, TABLES)
        from mtbayes.commands.learning import after, note_seen, opened
        from mtbayes.data.coder import Seen
        from mtbayes.progress import Progress, bar
        from mtbayes.tables.model import TableModel

        learned = TableModel.load(model)
        source = opened(screen, data)
        if name is not None:
            usage(check_id, name, source.names)
        extra = [one for one in learned.schema.check(source.names) if one != name]
        if extra:
            some = ", ".join(map(repr, extra[:8])) + (", ..." if len(extra) > 8 else "")
            screen.note(f"columns that the model does not know are ignored: {some}")
        seen = Seen.nothing()
        rows = 0
        bars = screen.bars and out is not None and source.rows is not None
        with (
            writer(out, as_json=as_json, safe=safe_cells) as write,
            bar("predicting", shown=bars) as callback,
        ):
            for batch in source.batches():
                if batch.num_rows:
                    x = learned.schema.code(batch, where=after(source, rows), seen=seen)
                    found = predictions(learned, x, coverage)
                    write(found if name is None else named(found, name, batch, rows))
                    rows += len(x)
                    callback(Progress(rows / max(rows, source.rows or 0)))
            if not rows:
                source.table()  # says what is wrong with a file without rows
        note_seen(screen, seen)
        if out is not None:
            screen.line(f"{rows} predictions in {screen.seconds:g} s: {out}")
            screen.done({"rows": rows, "out": str(out)})


def check_id(name: str, names: tuple[str, ...]) -> None:
    """There is such a column, or row numbers are asked for."""
    from mtbayes.data.schema import check_target

    if name not in names and name != ROW:
        check_target(names, name, "--id")


def named(found: Any, name: str, batch: Any, rows: int) -> Any:
    """Predictions beside a column of the file, or beside the numbers of rows after `rows`."""
    import pyarrow as pa

    own = (
        batch.column(name)
        if name in batch.schema.names
        else pa.array(range(rows + 1, rows + 1 + batch.num_rows))
    )
    names = [name, *(f"{n}.1" if n == name else n for n in found.schema.names)]
    return pa.RecordBatch.from_arrays([own, *found.columns], names=names)


def predictions(model: TableModel, x: Any, coverage: float) -> Any:
    """Predictions of coded rows, as a record batch."""
    import pyarrow as pa

    estimator = model.estimator
    found = estimator.predictive(x)
    if model.schema.task == "classes":
        columns = {"prediction": estimator.classes_[found.labels].tolist()}
        for label, p in zip(estimator.classes_, found.probs.T, strict=True):
            columns[f"p({label})"] = p
    else:
        low, high = found.interval(coverage)
        columns = {"mean": found.mean, "sd": found.std, "low": low, "high": high}
    return pa.RecordBatch.from_pydict(columns)
