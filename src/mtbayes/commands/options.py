"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def out(about: str) -> Any:
    """The option for a file to write."""
    return typer.Option("--out", "-o", help=about)


def _columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of columns for the shell to complete; none where the file cannot be read."""
    from mtbayes.data.reading import open_table

    # A line that ends in --target is not parsed: the file is among what is left over.
    for path in (ctx.params.get("data"), *ctx.args):
        try:
            return [name for name in open_table(path).names if name.startswith(incomplete)]
        except (TypeError, ValueError, OSError):
            continue
    return []


def _seed(value: int) -> int:
    """A seed that random numbers can start from."""
    if not 0 <= value < 2**31:
        raise typer.BadParameter(f"it must lie from 0 to 2147483647, got {value}. 0 is usual.")
    return value


Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print errors alone.")]
Force = Annotated[bool, typer.Option("--force", help="Write over files that exist.")]
Seed = Annotated[int, typer.Option(callback=_seed, help="Equal seeds give equal results.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="CSV, TSV, Parquet or Feather, or a folder of Parquet."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `fit` wrote.")]
Target = Annotated[str, typer.Option(help="The column to learn.", autocompletion=_columns)]
TargetOrNone = Annotated[
    str | None, typer.Option("--target", help="The column to learn.", autocompletion=_columns)
]
Task = Annotated[
    str | None, typer.Option(help="classes or number; guessed from the target if left out.")
]
Learner = Annotated[
    str, typer.Option("--learner", help="auto, network, linear or trees; auto is what fits best.")
]
T = Annotated[str, typer.Option("--t", help="auto, or 0 to 1: smaller is more robust.")]
M = Annotated[
    str, typer.Option("--m", help="Size of the ensemble that is trained as one, or auto.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where Ctrl-C stopped.")]
SafeCells = Annotated[
    bool,
    typer.Option(
        "--safe-cells",
        help="Put ' before cells of CSV that a spreadsheet would take for formulas (= + - @).",
    ),
]
Epochs = Annotated[int | None, typer.Option(help="Passes over the rows; by their number if none.")]
AnnotatorColumns = Annotated[
    str | None,
    typer.Option(
        "--annotators",
        help="Columns of DATA with a person's labels each: a1,a2,a3, or a pattern like 'rater_*'.",
    ),
]
AnnotationsFile = Annotated[
    Path | None,
    typer.Option("--annotations", help="A file with a line for each label: row, annotator, label."),
]
RowColumn = Annotated[
    str | None,
    typer.Option("--row", help="The column by which --annotations knows the rows of DATA."),
]
Classes = Annotated[
    str | None,
    typer.Option("--classes", help="All labels, where one person alone may use one: a,b,c."),
]
