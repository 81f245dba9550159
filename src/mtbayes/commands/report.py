"""`mtbayes report`: a model and data, or a folder of reproductions, as one page to show around."""

from __future__ import annotations

import importlib.metadata
import platform
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from mtbayes import __version__
from mtbayes.commands import manners
from mtbayes.commands.manners import BadUsage, Screen, new_file, percent, stem
from mtbayes.errors import InvalidInput
from mtbayes.types import FloatArray

if TYPE_CHECKING:
    from mtbayes.commands.effects import Importance
    from mtbayes.commands.model import Rows, TableModel
    from mtbayes.report.case import Case

_SUSPECTS = 30  # rows in the table
_CELLS = 3  # columns beside them: the most needed ones
_LONG = 9  # characters of a number
_EFFECTS = 6
_DOUBTED = 2000  # rows whose doubt is drawn
_PLURAL = {"number": "numbers", "category": "categories", "boolean": "booleans", "date": "dates"}
_PACKAGES = ("jax", "matplotlib", "numpy", "optax", "pyarrow", "scikit-learn", "scipy")


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|FOLDER", help="A file that `fit` wrote, or the --out of `reproduce`."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="For a MODEL: the rows to tell of, fitted or new."),
    ] = None,
    out: Annotated[
        Path | None,
        manners.out("The page; DATA's name with -report.html, or FOLDER/report.html, if none."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            help="For a FOLDER: a page of verdicts and tables as Markdown, too; in a file that "
            "has marks like <!-- begin: verdicts --> and <!-- end -->, what they ask for.",
        ),
    ] = None,
    seed: manners.Seed = 0,
    force: manners.Force = False,
    as_json: manners.Json = False,
    quiet: manners.Quiet = False,
    debug: manners.Debug = False,
) -> None:
    """Write one HTML page that needs no network.

    Of a MODEL: what it learned, whether its probabilities are right, which rows look wrong, how
    sure it is, what each column does. Of a FOLDER of `mtbayes reproduce`: verdicts, figures (drawn
    again) and tables.

    Example: mtbayes report houses.mtb houses.csv -o report.html
    """
    with Screen(quiet=quiet, as_json=as_json, debug=debug) as screen:
        if out is not None:
            new_file(out, force)
        if source.is_dir():
            if data is not None:
                raise BadUsage(f"DATA must be left out for a folder, got {data}. Name a model.")
            _folder(screen, source, out or source / "report.html", markdown)
            return
        if markdown is not None:
            raise BadUsage("markdown must be left out for a model: it is of a folder of results.")
        if data is None:
            raise BadUsage(
                f"DATA must be given beside the model {source}: the rows to tell of, such as the "
                f"file that was fitted. Try `mtbayes report {source} data.csv`."
            )
        _model(
            screen, source, data, out or new_file(Path(f"{stem(data)}-report.html"), force), seed
        )


def _folder(screen: Screen, folder: Path, out: Path, markdown: Path | None) -> None:
    """Draw all figures of a folder of results again, and write its page."""
    from mtbayes.report import REPORTS, page

    names = page.there(folder)
    if not names:
        raise InvalidInput(
            f"FOLDER must hold the numbers of `mtbayes reproduce`, got none in {folder}. Run "
            f"`mtbayes reproduce all --out {folder}` first."
        )
    for name in names:
        REPORTS[name].draw(folder)
    texts = {out: page.page(folder)}
    if markdown is not None:
        before = markdown.read_text("utf-8") if markdown.exists() else ""
        held = page.within(before, folder)
        if held is None and before and not before.startswith(page.TITLE):
            raise BadUsage(
                f"markdown must be a new file, one that this command wrote, or one with marks such "
                f"as <!-- begin: verdicts --><!-- end -->, got {markdown}. Choose another name."
            )
        command = f"mtbayes report {folder} --markdown {markdown}"
        texts[markdown] = page.markdown(folder, command, markdown.parent) if held is None else held
    for path, text in texts.items():
        _write(path, text)
        screen.line(f"{path}")
    screen.done({"out": str(out), "experiments": names})


def _model(screen: Screen, path: Path, data: Path, out: Path, seed: int) -> None:
    """Look at a model with data, and write its page."""
    from mtbayes.commands.judged import judge, judgeable
    from mtbayes.commands.model import TableModel, opened, rows_of
    from mtbayes.estimators.progress import bar
    from mtbayes.report.model import page

    model = TableModel.load(path)
    source = opened(screen, data)
    every = rows_of(screen, source, model.schema)
    rows = judgeable(model, every)
    if len(rows.y) < len(every.y):
        screen.note(
            f"{len(every.y) - len(rows.y):,} rows are left out: they were fitted with the others, "
            "and no fit that has not seen them can judge them"
        )
    with bar("Looking at the model", shown=screen.bars) as tell:
        told, seen = judge(model, rows)
        tell(0.1)
        case = gather(told, rows, seen, (path, data), source.decimal, seed, tell)
        _write(out, page(case))
    fitted = int(seen.sum())
    screen.line(
        f"Rows: {len(seen)}, of which {fitted} were fitted and {len(seen) - fitted} are new."
    )
    screen.line(f"Page: {out} ({screen.seconds:g} s)")
    share, low, high = case.contamination
    screen.done(
        {
            "out": str(out),
            "rows": len(seen),
            "fitted": fitted,
            "wrong": {"share": share, "low": low, "high": high},
            "words": list(case.words),
            "columns": {one.column: one.loss for one in case.importance},
        }
    )


def _write(path: Path, text: str) -> None:
    from mtbayes._files import atomic

    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def gather(
    model: TableModel,
    rows: Rows,
    seen: Any,
    files: tuple[Path, Path],
    decimal: str,
    seed: int,
    tell: Callable[..., None],
) -> Case:
    """All numbers of the page, from a model that was judged on the rows."""
    from mtbayes.commands.audit import findings
    from mtbayes.commands.effects import Sample, columns, effect, importances, patches
    from mtbayes.data.pixels import images
    from mtbayes.report.case import Case

    estimator, schema = model.estimator, model.schema
    labels = [str(label) for label in getattr(estimator, "classes_", [])]
    found = findings(model, rows.y)
    top = found.order[:_SUSPECTS]
    pictures = images(rows.table, schema, decimal)
    groups = columns(schema) if pictures is None else patches(schema)
    sample = Sample.of(rows, 1 - estimator.outlier_probability_, groups, seed)
    needed = importances(model, sample, seed, lambda share: tell(0.1 + 0.7 * share))
    shown = [] if pictures is not None else [one.column for one in needed]
    effects = []
    for i, name in enumerate(shown[:_EFFECTS]):
        effects.append(effect(model, sample, name))
        tell(0.8 + 0.1 * i / _EFFECTS)
    aleatoric, epistemic = _doubt(model, rows, seed)
    return Case(
        target=schema.target,
        labels=labels,
        model_file=files[0].name,
        data_file=files[1].name,
        words=_words(model, rows, needed),
        y=np.searchsorted(estimator.classes_, rows.y) if labels else rows.y,
        held_out=estimator.held_out_,
        wrong=estimator.outlier_probability_,
        seen=seen,
        judged=bool(estimator.score_path_) or not seen.any(),
        t=estimator.t_,
        chosen=estimator.t == "auto",
        path=estimator.score_path_,
        contamination=tuple(estimator.contamination_),
        suspects=_suspects(found, rows, shown[:_CELLS], decimal),
        pictures=None if pictures is None else pictures[top],
        brightness=(0.0, 1.0) if pictures is None else (pictures.min(), pictures.max()),
        aleatoric=aleatoric,
        epistemic=epistemic,
        importance=needed,
        effects=effects,
        heat=None if pictures is None else _heat(model, groups, needed),
        settings=_settings(model, rows),
    )


def _suspects(found: Any, rows: Rows, columns: list[str], decimal: str) -> list[dict[str, Any]]:
    """The first rows to look at, with cells of the columns that matter."""
    count = min(_SUSPECTS, len(found.order))
    cells = {
        name: _cells(rows.table.column(name).take(found.order[:count]), decimal) for name in columns
    }
    return [
        {
            "row": int(rows.place[found.order[i]]),
            "probability": float(found.probability[i]),
            "given": found.given[i],
            "suggested": found.suggested[i],
            "why": found.why[i],
            "cells": {name: values[i] for name, values in cells.items()},
        }
        for i in range(count)
    ]


def _cells(values: Any, decimal: str) -> list[str]:
    """Cells as text; numbers in one style, and no longer than they need to be."""
    from mtbayes.data.kinds import Unfit, numbers

    raw = ["" if value is None else str(value) for value in values.to_pylist()]
    try:
        read = numbers(values.combine_chunks(), decimal)[0]
    except Unfit:
        return raw
    short = (min(f"{v:.10g}", f"{v:.6g}", key=lambda text: len(text) > _LONG) for v in read)
    return [text if np.isnan(v) else s for text, v, s in zip(raw, read, short, strict=True)]


def _heat(model: TableModel, groups: dict[str, list[int]], needed: list[Importance]) -> FloatArray:
    """What the shuffling of a pixel's patch costs, [side, side]; 0 for a pixel that is not used."""
    from mtbayes.data.pixels import pixel_columns

    features, names = model.schema.features, pixel_columns(model.schema) or []
    loss = {features[i]: one.loss for one in needed for i in groups[one.column]}
    side = round(len(names) ** 0.5)
    return np.reshape([loss.get(name, 0.0) for name in names], (side, side))


def _doubt(model: TableModel, rows: Rows, seed: int) -> tuple[FloatArray, FloatArray]:
    """Aleatoric and epistemic doubt of some rows: bits, or variances."""
    some = np.random.default_rng(seed).permutation(len(rows.y))[:_DOUBTED]
    found = model.estimator.uncertainty(rows.x[some])
    unit = np.log(2) if model.schema.task == "classes" else 1.0
    return found.aleatoric / unit, found.epistemic / unit


def _words(model: TableModel, rows: Rows, needed: list[Importance]) -> list[str]:
    """What was learned, in sentences."""
    estimator, schema = model.estimator, model.schema
    kinds = Counter(column.kind for column in schema.columns)
    used = ", ".join(f"{count} {_PLURAL[k] if count > 1 else k}" for k, count in kinds.items())
    aim = f"number {schema.target}"
    if schema.task == "classes":
        aim = f"{len(estimator.classes_)} classes of {schema.target} ({_some(estimator.classes_)})"
    share = estimator.contamination_
    likely = int((estimator.outlier_probability_ > 0.5).sum())
    return [
        f"The model predicts the {aim} from {len(schema.columns)} columns ({used}).",
        *_scores(model, rows),
        f"About {percent(share.value)} of the values of {schema.target} that it was fitted to are "
        f"wrong, with 95 % confidence {percent(share.low)} to {percent(share.high)}; of the "
        f"{len(rows.y)} rows here {likely} look wrong.",
        f"What it needs most: {_some([one.column for one in needed], 3)}.",
        *_left_out(schema.dropped),
    ]


def _left_out(dropped: Any) -> list[str]:
    """A sentence for each reason."""
    names: dict[str, list[str]] = {}
    for name, why in dropped:
        names.setdefault(why, []).append(name)
    return [f"Left out, {why}: {_some(each)}." for why, each in names.items()]


def _scores(model: TableModel, rows: Rows) -> list[str]:
    """How well rows are predicted by fits that have not seen them, beside the best blind guess."""
    from mtbayes.commands.fit import held_out

    held, good = held_out(model, rows), 1 - model.estimator.outlier_probability_
    if not held:
        return ["Rows were too few to keep some out of the fit, so there are no fair scores."]
    if model.schema.task == "classes":
        common = max(float(np.average(rows.y == c, weights=good)) for c in set(rows.y.tolist()))
        return [
            f"It is right in {percent(held['accuracy'])} of rows that it has not seen, where the "
            f"given class is believed, and in {percent(held['accuracy of all rows'])} counting "
            f"every row; to guess the most common class would be right in {percent(common)}."
        ]
    blind = np.abs(rows.y - np.quantile(rows.y, 0.5, weights=good, method="inverted_cdf"))
    return [
        f"It is off by {held['absolute error']:.4g} on average in rows that it has not seen, where "
        f"the given value is believed, and by {held['absolute error of all rows']:.4g} counting "
        f"every row; to guess the median would be off by {np.average(blind, weights=good):.4g}."
    ]


def _some(names: Any, most: int = 6) -> str:
    return ", ".join(map(str, names[:most])) + (" and others" if len(names) > most else "")


def _settings(model: TableModel, rows: Rows) -> list[tuple[str, str]]:
    estimator = model.estimator
    parameters = {k: v for k, v in estimator.get_params().items() if k != "verbose"}
    facts = {
        "estimator": type(estimator).__name__,
        **{k: str(v) for k, v in parameters.items()},
        "t taken": f"{estimator.t_:g}",
        "how the fit ended": estimator.status_,
        "rows that were fitted": str(0 if model.seen is None else len(model.seen)),
        "rows of this page": str(len(rows.y)),
        "mtbayes": __version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }
    return list(facts.items())
