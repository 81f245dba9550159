"""One file, and one model of it, for all that asks about tables: compilation takes time."""

import os

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner

from mtbayes import _files
from mtbayes.cli import app
from mtbayes.data.schema import learn_table
from mtbayes.estimators import RobustRegressor
from mtbayes.fitting import crowd
from mtbayes.tables import comparison
from mtbayes.tables.contenders import OURS
from mtbayes.tables.model import TableModel

N = 120
QUICK = ["--t", "0.7", "--epochs", "30", "--m", "3"]


def run(*arguments, folder=None):
    """The command with these arguments, in a folder."""
    before = os.getcwd()
    os.chdir(folder or before)
    try:
        return CliRunner().invoke(app, [str(a) for a in arguments])
    finally:
        os.chdir(before)


def lines(x, colour, label):
    """Rows of text with gaps in x, a count, and a column that is empty."""
    return [
        f'{i},{"" if i % 20 == 0 else f"{x[i]:.4f}"},"{colour[i]}",,{label[i]}'
        for i in range(len(x))
    ]


class Checkpoints:
    """Which checkpoints are written; Ctrl-C comes before the one called `stop` is."""

    def __init__(self, patch, stop=None):
        self.written, self.stop, self.real = [], stop, _files.write_arrays
        patch.setattr(_files, "write_arrays", self)

    def __call__(self, path, *rest):
        if path.name == self.stop:
            raise KeyboardInterrupt
        self.written.append(path.name)
        self.real(path, *rest)


class Case:
    """A file with two classes, a tenth of them swapped, its model, and what `fit` said."""

    n, quick, run = N, QUICK, staticmethod(run)

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        self.folder = folder
        self.x = rng.normal(size=N)
        self.colour = rng.choice(["red", "dark, blue"], N)
        true = np.where(self.x + 0.5 * (self.colour == "red") > 0.25, "high", "low")
        self.swapped = np.sort(rng.choice(N, N // 10, replace=False))
        self.label = true.copy()
        self.label[self.swapped] = np.where(true[self.swapped] == "low", "high", "low")
        self.lines = lines(self.x, self.colour, self.label)
        self.data = self.write("data.csv", ["id,x,colour,nothing,label", *self.lines])
        self.model = folder / "data.mtb"
        self.fitted = run("fit", "data.csv", "--target", "label", *QUICK, folder=folder)

    def write(self, name, rows, encoding="utf-8"):
        path = self.folder / name
        path.write_text("\n".join(rows) + "\n", encoding=encoding)
        return path


@pytest.fixture
def checkpoints():
    return Checkpoints


@pytest.fixture(scope="session")
def case(tmp_path_factory):
    found = Case(tmp_path_factory.mktemp("commands"))
    assert found.fitted.exit_code == 0, found.fitted.output
    return found


@pytest.fixture(scope="module")
def few_trees():
    """Few trees look first at what several people said: enough where they are told apart easily."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd, "TREES", 30)
        yield


@pytest.fixture(scope="session")
def numbers():
    """A model of numbers, its rows and targets; the eighth of 60 is far off."""
    x = np.linspace(-1, 1, 60)
    y = 100 + x + 0.1 * np.random.default_rng(0).normal(size=60)
    y[7] = 130
    estimator = RobustRegressor(m=3, t=0.7, epochs=30, random_state=0).fit(x[:, None], y)
    schema, _ = learn_table(pa.table({"x": x, "y": y}), "y")
    return TableModel(estimator, schema), x[:, None], y


def forest(split):
    model = RandomForestClassifier(5, random_state=split.settings.seed).fit(split.x, split.y)
    return dict(zip("01", model.predict_proba(split.x_test).T, strict=True))


def prior(split):
    share = np.bincount(split.y, minlength=2) / len(split.y)
    return {str(c): np.full(len(split.x_test), share[c]) for c in (0, 1)}


@pytest.fixture
def cheap(monkeypatch):
    """Two methods that cost nothing."""
    monkeypatch.setattr(comparison, "CONTENDERS", {OURS: (forest, 1.0), "prior": (prior, 1.0)})
