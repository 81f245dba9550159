"""One runner for all studies: a frozen spec becomes cells, and what is missing is computed.

A cell is a frozen dataclass of settings that can `run()`. Its key is a hash of those settings and
of the package's version; its numbers are one file, `out/cells/KEY.json`, written whole or not at
all. So a study that was killed goes on where it stopped, and two studies that share a cell (the
reliability diagrams are cells of MNIST) compute it once. Cells run through `joblib.Parallel`, and
this process alone writes files: under `joblib.parallel_config(backend="dask")` a cluster serves.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import joblib
import numpy as np

from mtbayes import __version__, _check, _files
from mtbayes.data import datasets
from mtbayes.experiments.results import Row, write_columns, write_rows
from mtbayes.progress import Callback, Progress
from mtbayes.solve.checkpoint import describe

Columns: TypeAlias = dict[str, Any]
"""A table as named columns of equal length."""


@dataclass(frozen=True)
class How:
    """How to run a study: quick or full, over how many seeds, on how many processes.

    full: the paper's sizes; otherwise fewer rows, epochs and seeds
    seeds: None takes the spec's own number
    jobs: processes; None takes joblib's active configuration, which is one process by default
    """

    full: bool = False
    seeds: int | None = None
    jobs: int | None = None


class Found(NamedTuple):
    """What a cell gives: tidy rows, and tables by the name of the CSV file they belong to.

    Tables of one name are joined over the cells of a study, so that each must carry the columns
    that tell its rows apart (t, seed, …).
    """

    rows: list[Row]
    tables: dict[str, Columns] = {}  # noqa: RUF012  a NamedTuple's default; never changed


class Cell(Protocol):
    """A frozen dataclass of numbers, texts and tuples of them, from which all follows."""

    @property
    def label(self) -> str:
        """What the progress bar says."""

    @property
    def cost(self) -> float:
        """Work, in units that the cells of a study share: for the time left."""

    def run(self) -> Found:
        """Compute; the same settings give the same numbers."""


class Spec(Protocol):
    """A frozen dataclass that says all about a study; `seeds` is how many."""

    @property
    def seeds(self) -> int:
        """Seeds 0..seeds-1."""

    def cells(self) -> Sequence[Cell]:
        """All cells, in the order in which their rows are to stand."""


@dataclass(frozen=True)
class Study:
    """An experiment that the runner runs.

    name: of its folder below `out`
    about: one line for `mtbayes reproduce --list`
    quick, full: two specs of one class
    data: the data set it needs, if any
    """

    name: str
    about: str
    quick: Any
    full: Any
    data: str | None = None

    def spec(self, how: How) -> Any:
        """The spec that `how` asks for."""
        chosen = self.full if how.full else self.quick
        return chosen if how.seeds is None else replace(chosen, seeds=how.seeds)

    def run(self, out: Path, callback: Callback, how: How) -> None:
        """Compute what is missing and write `out/NAME/results.csv`, its tables and `run.json`.

        Raises `datasets.NotFound` where the data set can be had from nowhere.
        """
        spec = self.spec(how)
        rows = getattr(spec, "rows", None)
        if self.data is not None:
            there = len(datasets.load(self.data).y)
            rows = there if rows is None else min(rows, there)
        done = compute(spec.cells(), partial(_cell_file, out), callback, how.jobs)
        gather(self.name, done, out / self.name)
        about = _about(spec, how, rows, sum(d["seconds"] for d in done))
        with _files.atomic(out / self.name / "run.json") as temporary:
            temporary.write_text(json.dumps(about, indent=1) + "\n")


@dataclass(frozen=True)
class Plain:
    """An experiment without cells; most are quick as they are, others have a quick form."""

    about: str
    work: Callable[[Path, Callback], None] = field(repr=False)
    quick: Callable[[Path, Callback], None] | None = field(default=None, repr=False)

    def run(self, out: Path, callback: Callback, how: How) -> None:
        """Seeds and processes are its own affair."""
        work = self.work if how.full or self.quick is None else self.quick
        work(out, callback)


def _cell_file(out: Path, name: str) -> Path:
    return out / "cells" / f"{name}.json"


def key(cell: Cell) -> str:
    """The name of a cell's file: a hash of its class, its settings and the package's version."""
    settings = {"cell": type(cell).__qualname__, "version": __version__} | _settings(cell)
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]


def compute(
    cells: Sequence[Cell],
    file: Callable[[str], Path],
    callback: Callback,
    jobs: int | None = None,
) -> list[dict[str, Any]]:
    """What is in the cells' files, computing those that are missing; file: of a cell's key."""
    if jobs is not None:
        _check.count(jobs, "jobs", "It is the number of processes; 1 is the default.")
    names = [key(cell) for cell in cells]
    missing = {
        name: cell for name, cell in zip(names, cells, strict=True) if not file(name).exists()
    }
    total = sum(cell.cost for cell in cells) or 1.0
    done = total - sum(cell.cost for cell in missing.values())
    first = next(iter(missing.values())).label if missing else ""
    callback(Progress(done / total, first))
    with warnings.catch_warnings():
        # joblib replaces a process that holds many compiled programs; nothing is lost by it.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
        for name, content in _computed(missing, jobs):
            with _files.atomic(file(name)) as temporary:
                temporary.write_text(json.dumps(content))
            done += missing[name].cost
            callback(Progress(done / total, missing[name].label))
    return [json.loads(file(name).read_text()) for name in names]


def gather(name: str, done: Iterable[dict[str, Any]], folder: Path) -> None:
    """Join the cells' rows, if any, into `results.csv`, and their tables into one for each name."""
    rows: list[Row] = []
    tables: dict[str, dict[str, list[Any]]] = {}
    for content in done:
        rows += [Row(*row)._replace(experiment=name) for row in content["rows"]]
        for table, columns in content["tables"].items():
            whole = tables.setdefault(table, {column: [] for column in columns})
            for column, values in columns.items():
                whole[column] += values
    if rows:
        write_rows(folder / "results.csv", rows)
    for table, joined in tables.items():
        write_columns(folder / f"{table}.csv", joined)


def _computed(missing: dict[str, Cell], jobs: int | None) -> Iterable[tuple[str, dict[str, Any]]]:
    """Contents of the missing cells as they come, in any order."""
    work = [joblib.delayed(_content)(name, cell) for name, cell in missing.items()]
    return shared_out(work, jobs, as_they_come="generator_unordered", batch_size=1)


def shared_out(
    work: Sequence[Any], jobs: int | None, *, as_they_come: str = "generator", **options: Any
) -> Iterator[Any]:
    """Results of `joblib.Parallel`, one after the other."""
    try:
        parallel = joblib.Parallel(n_jobs=jobs, return_as=as_they_come, **options)
    except ValueError:  # Ray's backend gives lists alone: short ones, so that little can be lost
        size = 4 * joblib.effective_n_jobs(jobs)
        for begin in range(0, len(work), size):
            yield from joblib.Parallel(n_jobs=jobs, **options)(work[begin : begin + size])
    else:
        yield from parallel(work)


def _content(name: str, cell: Cell) -> tuple[str, dict[str, Any]]:
    started = time.monotonic()
    found = cell.run()
    tables = {
        table: {column: _plain(values) for column, values in columns.items()}
        for table, columns in found.tables.items()
    }
    return name, {
        "settings": _settings(cell),
        "seconds": time.monotonic() - started,
        "rows": [list(row) for row in found.rows],
        "tables": tables,
    }


def _plain(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _settings(frozen: Any) -> dict[str, Any]:
    """A frozen dataclass as JSON has it: tuples are lists there, arrays are their digests."""
    result: dict[str, Any] = json.loads(json.dumps(asdict(frozen), default=describe))
    return result


def _about(spec: Any, how: How, rows: int | None, seconds: float) -> dict[str, Any]:
    """What a reader of the numbers wants to know of the run."""
    packages = ("jax", "numpy", "optax", "scipy")
    return {
        "mode": "full" if how.full else "quick",
        "spec": _settings(spec),
        "rows": rows,
        "seconds": round(seconds, 1),
        "versions": {"mtbayes": __version__, "python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in packages},
    }
