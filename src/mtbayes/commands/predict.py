"""`mtbayes predict`: rows of a file of any size in, predictions out, a batch at a time."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtbayes.commands import options
from mtbayes.commands.outputs import TABLES, new_file, writer
from mtbayes.commands.screen import Screen, open_share

if TYPE_CHECKING:
    from mtbayes.tables.model import TableModel


def predict(
    model: options.ModelFile,
    data: options.Data,
    out: Annotated[
        Path | None, options.out("CSV, Parquet or Feather by its ending; stdout if none.")
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Probability that low to high holds the number.")
    ] = 0.9,
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
        from mtbayes.commands.learning import note_strays, opened
        from mtbayes.progress import Progress, bar
        from mtbayes.tables.model import TableModel

        learned = TableModel.load(model)
        source = opened(screen, data)
        extra = learned.schema.check(source.names)
        if extra:
            shown = ", ".join(map(repr, extra[:8])) + (", ..." if len(extra) > 8 else "")
            screen.note(f"columns that the model does not know are ignored: {shown}")
        strays: Counter[str] = Counter()
        rows = 0
        bars = screen.bars and out is not None and source.rows is not None
        with writer(out, as_json=as_json) as write, bar("predicting", shown=bars) as callback:
            for batch in source.batches():
                if batch.num_rows:
                    x = learned.schema.code(batch, decimal=source.decimal, strays=strays)
                    write(predictions(learned, x, coverage))
                    rows += len(x)
                    callback(Progress(rows / max(rows, source.rows or 0)))
            if not rows:
                source.table()  # says what is wrong with a file without rows
        note_strays(screen, strays)
        if out is not None:
            screen.line(f"{rows} predictions in {screen.seconds:g} s: {out}")
            screen.done({"rows": rows, "out": str(out)})


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
