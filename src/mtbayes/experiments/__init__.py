"""The paper's experiments: frozen specs, numbers written to files, no pictures.

Every experiment has `about`, one line, and `run(out, callback, how)`: it writes its numbers below
`out / NAME` and reports its `Progress` to the callback; `how` is a `How(full, seeds,
jobs)`. Most are a `Study` of `runner.py`, and a new one is a file that holds

- a cell, a frozen dataclass of plain settings (numbers, texts, tuples of them) with `label`, `cost`
  (seconds, about) and `run() -> Found(rows, tables)`. It loads or makes its data itself, from its
  settings alone. One cell should train all t of a figure at once (`solve.sweep`), for one seed;
- a spec, a frozen dataclass with a field `seeds` and `cells() -> list of cells`;
- `STUDY = Study(name, about, quick=Spec(...), full=Spec(...), data="mnist" or None)`,

and a line in EXPERIMENTS here and in REPORTS of `mtbayes.report`. The runner writes
`out/NAME/results.csv`, the tidy rows of all cells; `out/NAME/TABLE.csv` for every table that cells
give, joined over cells; and `out/NAME/run.json`, the spec, versions and seconds. Read them back
with `results.read_rows` and `results.read_table`. A cell's own file is `out/cells/KEY.json`.
"""

from mtbayes.experiments import housing, images, multimodal, prior, pull, tlog, toy
from mtbayes.experiments.results import COLUMNS, Row
from mtbayes.experiments.runner import Found, How, Plain, Study

EXPERIMENTS: dict[str, Plain | Study] = {
    "toy": Plain(
        "A model too simple and one outlier (Fig. 1, 9, Tables I, III)", toy.run, toy.quick
    ),
    "tlog": Plain("The log_t loss against the probability given (Fig. 2)", tlog.run),
    "influence": Plain("The pull of a row against where it lies (Fig. 3)", pull.run),
} | {
    study.name: study
    for study in (
        multimodal.STUDY,
        images.MNIST,
        images.EMNIST,
        images.CIFAR10,
        images.NLL_SPLIT,
        housing.STUDY,
        prior.STUDY,
        images.RELIABILITY,
    )
}
"""Every experiment by its name on the command line."""

__all__ = ["COLUMNS", "EXPERIMENTS", "Found", "How", "Plain", "Row", "Study"]
