"""Arrays and frames that are odd at random: learned from, or refused with a reason."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from mtbayes import RobustClassifier, RobustRegressor

CASES = 300
N = 24
ODD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, 0.0, None, "", "x", "1,5", 2**53 + 1]
ODD += [10**400, True, 1j, b"a", pd.NaT, np.datetime64("2020-02-28"), [1], {}, "a\x1b[2J", "01"]


def rows(rng):
    """X in one of many forms."""
    x = rng.normal(size=(N, int(rng.integers(1, 4))))
    how = rng.integers(10)
    if how < 4:
        x = x.astype(object) if rng.random() < 0.5 else x
        for _ in range(int(rng.integers(3))):
            value = ODD[rng.integers(len(ODD))]
            place = tuple(rng.integers(side) for side in x.shape)
            if x.dtype == object or isinstance(value, float):
                x[place] = value
        return x
    if how == 4:
        return np.ma.masked_greater(x, rng.normal())
    if how == 5:
        return [sparse.csr_matrix(x), x[None], x[:, 0], x[:0], x.tolist(), None][rng.integers(6)]
    cells = {f"v{i}": column.astype(object).copy() for i, column in enumerate(x.T)}
    cells["text"] = np.array([f"some words of row {chr(97 + i)} here" for i in range(N)], object)
    cells["level"] = np.resize(np.array(["u", "v", None], object), N)
    for _ in range(int(rng.integers(3))):
        name = list(cells)[rng.integers(len(cells))]
        cells[name][rng.integers(N)] = ODD[rng.integers(len(ODD))]
    if how < 9:
        return pd.DataFrame(cells)
    try:
        return pl.DataFrame({name: list(column) for name, column in cells.items()}, strict=False)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pd.DataFrame(cells)


def targets(rng, classes):
    """Targets of N rows, a few of them odd."""
    y = np.resize(["a", "b", "b"], N).astype(object) if classes else rng.normal(size=N)
    if rng.random() < 0.3:
        value = ODD[rng.integers(len(ODD))]
        y = y.astype(object)
        y[rng.integers(N)] = value
    if rng.random() < 0.1:
        y = [y[:-1], y[:, None], np.ma.masked_array(np.arange(N), np.arange(N) == 3)][
            rng.integers(3)
        ]
    return y


def tried(rng):
    """Whether rows and targets are refused; if not, what is predicted is a number or a label."""
    classes = bool(rng.integers(2))
    x, y = rows(rng), targets(rng, classes)
    kind, inner = (
        (RobustClassifier, LogisticRegression()) if classes else (RobustRegressor, Ridge())
    )
    if isinstance(x, pd.DataFrame | pl.DataFrame) and rng.integers(2):
        inner = "trees"  # of numbers that we code; an estimator of one's own sees the frame
    try:
        model = kind(inner, t=1.0, random_state=0).fit(x, y)
    except (ValueError, TypeError) as error:
        return str(error)
    said = model.predict_proba(x) if classes else model.predict(x)
    assert np.isfinite(said).all()
    if classes:
        assert {*model.classes_.tolist()} == {*np.asarray(y).ravel().tolist()}
    assert not np.ma.is_masked(x)
    return None


def fuzz(seeds):
    refused = 0
    for seed in seeds:
        said = tried(np.random.default_rng(seed))
        assert said is None or said, f"seed {seed}: refused without a reason"
        refused += said is not None
    return refused


@pytest.mark.filterwarnings("ignore")
def test_a_few_odd_rows():
    assert 0 < fuzz(range(20)) < 20


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_300_odd_rows():
    refused = fuzz(range(CASES))
    print("refused", refused, "of", CASES)
    assert 0 < refused < CASES
