"""The command on files: does `audit` find swapped labels, how long does it take beside cleanlab,
how much memory does `predict` need, do the scores of `compare` on dirty rows rank methods as clean
rows would.

python benchmarks/command.py audit [--seeds 3]
python benchmarks/command.py seconds [--only 569x30]
python benchmarks/command.py predict [--rows 2000000]
python benchmarks/command.py compare [--seeds 3]
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.utils import Bunch

from mtbayes._files import Unfinished
from mtbayes.experiments.runner import compute
from mtbayes.tables.comparison import ALL, BELIEVED, Comparison, cells_of, test_rows
from mtbayes.tables.contenders import CONTENDERS
from mtbayes.tables.model import Settings
from mtbayes.tables.scores import Trial, scores

MTBAYES = Path(sys.executable).with_name("mtbayes")


def call(*arguments):
    subprocess.run([MTBAYES, *map(str, arguments), "--quiet"], check=True)


def swapped(data, seed, path):
    """A file of a data set with a tenth of its labels swapped; their rows, from 1."""
    rng, y, classes = np.random.default_rng(seed), data.target.copy(), len(data.target_names)
    rows = rng.choice(len(y), round(0.1 * len(y)), replace=False)
    y[rows] = (y[rows] + rng.integers(1, classes, len(rows))) % classes
    columns = dict(zip(map(str, data.feature_names), data.data.T, strict=True))
    labels = np.array([str(name) for name in data.target_names])[y]
    pa.csv.write_csv(pa.table(columns | {"label": labels}), path)
    return set((rows + 1).tolist())


def audit(folder, seeds):
    """Swapped labels within the first 15 % of the ranking."""
    print("| data | seed | rows | swapped | in the first 15 % |")
    print("|---|---|---|---|---|")
    for name, load in (("breast cancer", load_breast_cancer), ("digits", load_digits)):
        for seed in range(seeds):
            data, out = folder / "data.csv", folder / "audit.csv"
            wrong = swapped(load(), seed, data)
            call("audit", data, "--target", "label", "-o", out, "--force")
            with out.open() as file:
                ranked = [int(row["row"]) for row in csv.DictReader(file)]
            first = set(ranked[: int(0.15 * len(ranked))])
            share = f"{100 * len(wrong & first) / len(wrong):.1f} %"
            print(f"| {name} | {seed} | {len(ranked)} | {len(wrong)} | {share} |", flush=True)


CLEANLAB = """
import sys
import numpy as np
import pyarrow.csv
from cleanlab.filter import find_label_issues
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

table = pyarrow.csv.read_csv(sys.argv[1])
x = np.stack([column.to_numpy() for column in table.drop_columns("label").columns], axis=1)
y = np.unique(table["label"].to_numpy(), return_inverse=True)[1]
model = RandomForestClassifier(300, random_state=0)
unseen = cross_val_predict(model, x, y, method="predict_proba")
issues = find_label_issues(y, unseen, n_jobs=1)
model.fit(x[~issues], y[~issues])
"""
SHAPES = {"569x30": None, "1000x20": 2, "5000x40": 10, "50000x20": 2}
"""Of tables, with their classes; the first is breast cancer."""


def made(shape):
    """A table of a shape."""
    if SHAPES[shape] is None:
        return load_breast_cancer()
    rows, columns = map(int, shape.split("x"))
    x, y = make_classification(
        rows, columns, n_informative=columns // 2, n_classes=SHAPES[shape], random_state=0
    )
    names = [f"x{i}" for i in range(columns)]
    return Bunch(data=x, target=y, feature_names=names, target_names=sorted(set(y.tolist())))


def timed(*command, **environment):
    """Seconds of a fresh process: on the clock, and of the processor."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        list(map(str, command)), check=True, stdout=subprocess.DEVNULL, env=os.environ | environment
    )
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds(folder, shapes):
    """`audit` with nothing kept, with compiled programs kept, and cleanlab, in fresh processes.

    cleanlab has five folds of a forest of 300 trees, finds issues and fits the others anew.
    """
    print("| table | nothing kept | kept | cleanlab | ratio, nothing kept | ratio, kept |")
    print("|---|---|---|---|---|---|")
    for shape in shapes:
        data, out, kept = folder / "data.csv", folder / "audit.csv", folder / shape
        swapped(made(shape), 0, data)
        ours = (MTBAYES, "audit", data, "--target", "label", "-o", out, "--force", "--quiet")
        first, again = (timed(*ours, XDG_CACHE_HOME=str(kept)) for _ in range(2))
        rival = timed(sys.executable, "-c", CLEANLAB, data)
        told = [f"{wall:.1f} s ({work:.1f} of processor)" for wall, work in (first, again, rival)]
        ratios = [f"{each[0] / rival[0]:.2f} ({each[1] / rival[1]:.2f})" for each in (first, again)]
        print(f"| {shape} | {' | '.join(told + ratios)} |", flush=True)


def predict(folder, rows):
    """Time and peak memory for a file of numbers."""
    rng, names = np.random.default_rng(0), [f"x{i}" for i in range(8)]

    def table(count):
        x = rng.normal(size=(count, 8)).round(5)
        y = x[:, 0] + np.sin(x[:, 1]) + 0.1 * rng.normal(size=count)
        return pa.table(dict(zip(names, x.T, strict=True)) | {"y": y})

    train, new, model = folder / "train.csv", folder / "new.csv", folder / "model.mtb"
    pa.csv.write_csv(table(1000), train)
    with pa.csv.CSVWriter(new, table(1).schema) as file:
        for begin in range(0, rows, 100_000):
            file.write_table(table(min(100_000, rows - begin)))
    call("fit", train, "--target", "y", "--model", model, "--t", "0.9", "--epochs", "20")
    # In a process of its own: the peak of children is the largest of them.
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    started = time.monotonic()
    command = [MTBAYES, "predict", model, new, "-o", folder / "out.csv", "--quiet"]
    told = subprocess.run(
        [sys.executable, "-c", code, *command], check=True, capture_output=True, text=True
    )
    with (folder / "out.csv").open("rb") as file:
        written = sum(1 for _ in file) - 1
    size = new.stat().st_size / 1e6
    print(f"{written} rows ({size:.0f} MB of CSV) in {time.monotonic() - started:.0f} s, "
          f"peak memory {int(told.stdout) / 1e6:.2f} GB")  # fmt: skip


def compare(folder, splits):
    """Scores on dirty test rows beside those on the same rows with their true labels."""
    data = load_breast_cancer()
    rng, y = np.random.default_rng(0), data.target.copy()
    rows = rng.choice(len(y), round(0.1 * len(y)), replace=False)
    y[rows] = 1 - y[rows]
    cells = cells_of(data.data, y, 2, splits, Settings("auto", 10, None, 0))
    contents = compute(
        cells, Unfinished(folder).file, lambda p: print(f"{p.share:.0%} {p.words}", flush=True)
    )
    tests = [test_rows(y, 2, 0, r) for r in range(splits)]
    trials = [Trial(y[test], {}) for test in tests]
    for cell, content in zip(cells, contents, strict=True):
        predicted = content["tables"]["predicted"]
        trials[cell.repeat].predicted[cell.method] = {k: np.array(v) for k, v in predicted.items()}
    found = Comparison.of(trials, len(y))
    print(
        "| method | accuracy: as given | by trust | true | log score: as given | by trust | true |"
    )
    print("|---|---|---|---|---|---|---|")
    for method in CONTENDERS:
        true = [
            scores(trial.predicted[method], data.target[test], np.ones(len(test)), None)
            for trial, test in zip(trials, tests, strict=True)
        ]
        cells = []
        for name, form in (("accuracy", "{:.3f}"), ("log score", "{:.3f}")):
            dirty = [found.values[kind][method][name].mean() for kind in (ALL, BELIEVED)]
            cells += [form.format(v) for v in (*dirty, np.mean([t[name] for t in true]))]
        print(f"| {method} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["audit", "seconds", "predict", "compare"])
    parser.add_argument("--only", choices=list(SHAPES), action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if options.what == "audit":
            audit(Path(place), options.seeds)
        elif options.what == "seconds":
            seconds(Path(place), options.only or SHAPES)
        elif options.what == "compare":
            compare(Path(place), options.seeds)
        else:
            predict(Path(place), options.rows)
