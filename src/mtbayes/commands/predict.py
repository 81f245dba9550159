"""`mtbayes predict`: rows of a file of any size in, predictions out, a batch at a time."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtbayes.commands import manners
from mtbayes.commands.manners import Screen, new_file, open_share

if TYPE_CHECKING:
    from mtbayes.commands.model import TableModel


def predict(
    model: manners.ModelFile,
    data: manners.Data,
    out: Annotated[
        Path | None, manners.out("CSV, Parquet or Feather by its ending; stdout if none.")
    ] = None,
    coverage: Annotated[
        float, typer.Option(help="Probability that low to high holds the number.")
    ] = 0.9,
    force: manners.Force = False,
    seed: manners.Seed = 0,
    as_json: manners.Json = False,
    quiet: manners.Quiet = False,
    debug: manners.Debug = False,
) -> None:
    """Predict the rows of a file: class probabilities, or mean, sd and an interval.

    Predictions are the same whatever --seed is: the model's file holds the draws.

    Example: mtbayes predict houses.mtb new.csv -o predictions.csv
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug) as screen:
        open_share(coverage, "coverage", "0.9 is the default.")
        if out is not None:
            new_file(out, force, (".csv", ".parquet", ".feather", ".arrow"))
        from mtbayes.commands.model import TableModel, note_strays, opened

        learned = TableModel.load(model)
        source = opened(screen, data)
        extra = learned.schema.check(source.names)
        if extra:
            shown = ", ".join(map(repr, extra[:8])) + (", ..." if len(extra) > 8 else "")
            screen.note(f"columns that the model does not know are ignored: {shown}")
        strays: Counter[str] = Counter()
        rows = 0
        with _writer(out, as_json) as write:
            for batch in source.batches():
                if batch.num_rows:
                    x = learned.schema.code(batch, decimal=source.decimal, strays=strays)
                    write(predictions(learned, x, coverage))
                    rows += len(x)
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


@contextmanager
def _writer(out: Path | None, as_json: bool) -> Iterator[Callable[[Any], None]]:
    """What takes record batches: a file that appears when it is whole, or the screen."""
    from mtbayes._files import atomic

    if out is None:
        yield from (_json_lines() if as_json else _arrow(sys.stdout.buffer, ".csv"))
    else:
        with atomic(out) as temporary:
            yield from _arrow(str(temporary), out.suffix.lower())


def _arrow(sink: Any, ending: str) -> Iterator[Callable[[Any], None]]:
    import pyarrow.csv
    import pyarrow.parquet

    kinds = {
        ".parquet": pyarrow.parquet.ParquetWriter,
        ".feather": pyarrow.ipc.new_file,
        ".arrow": pyarrow.ipc.new_file,
    }
    made: list[Any] = []

    def write(batch: Any) -> None:
        if not made:
            made.append(kinds.get(ending, pyarrow.csv.CSVWriter)(sink, batch.schema))
        made[0].write_batch(batch)

    try:
        yield write
    finally:
        for writer in made:
            writer.close()


def _json_lines() -> Iterator[Callable[[Any], None]]:
    def write(batch: Any) -> None:
        for row in batch.to_pylist():
            sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")

    yield write
