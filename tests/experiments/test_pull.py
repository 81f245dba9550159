"""Figure 3: the shape that the theory gives it."""

import math

import numpy as np
import pytest

from mtbayes.experiments import pull
from mtbayes.experiments.results import read_columns
from mtbayes.report import REPORTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    pull.run(out, lambda _: None)
    return out


def test_terms_grow_at_t_one_and_fall_below(folder):
    terms = read_columns(folder / "influence" / "terms.csv")
    minima = read_columns(folder / "influence" / "minima.csv")
    z = terms["z"]
    # At t = 1 the slope is 1/2 on both sides of the mean, all the way.
    step = z[1] - z[0]
    slopes = np.abs(np.diff(terms["1"]) / step)
    assert np.sort(slopes)[1:] == pytest.approx(0.5, rel=1e-6)
    assert minima["phi"][0] == pytest.approx(-1.446)
    for t, phi in zip((0.9, 0.7, 0.5, 0.3), minima["phi"][1:], strict=True):
        size, a = terms[f"{t:g}"], 1 - t
        # Bounded, the bound reached at √(2/(1-t)) from φ, and falling beyond.
        bound = (4 * math.pi) ** (-a / 2) * math.exp(-0.5) / math.sqrt(2 * a)
        assert size.max() <= bound * (1 + 1e-9)
        assert size.max() == pytest.approx(bound, rel=1e-3)
        beyond = np.abs(z - phi) > math.sqrt(2 / a) + step
        assert abs(phi) < 1.5
        assert (np.diff(size[beyond & (z > phi)]) < 0).all()
        assert (np.diff(size[beyond & (z < phi)]) > 0).all()
        assert size[0] < 0.1 * size.max()


def test_sensitivity_of_fitted_rows_is_the_formula(folder):
    columns = read_columns(folder / "influence" / "sensitivity.csv")
    t = columns["t"]
    expected = math.sqrt(2) * math.exp(-0.5) * (2 - t) ** 1.5 / np.sqrt(1 - t)
    middle = t < 0.99  # near 1 a finite sample of quantiles has lighter tails
    np.testing.assert_allclose(columns["fitted"][middle], expected[middle], rtol=0.02)
    assert abs(t[columns["fitted"].argmin()] - 0.5) < 0.05
    for name in ("toy m=1", "toy m=inf", "fitted"):
        assert columns[name][0] > 50  # at t = .9999
        assert np.isfinite(columns[name]).all()


def test_drawn_from_the_files_alone(folder, monkeypatch):
    monkeypatch.setattr(pull, "gaussian_minimum", None)
    names = {path.name for path in REPORTS["influence"].draw(folder)}
    assert {"fig3-influence.png", "sensitivity.svg"} <= names
    (table,) = REPORTS["influence"].tables(folder)
    assert table.row_count == 5
