"""`fit(X, y, trusted=mask)`: rows whose target is known to be right."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh

from mtbayes import InvalidInput, RobustClassifier, RobustRegressor
from mtbayes.data.sources import open_stream

N, FEW = 150, 10
ODD = np.arange(N) >= N - FEW


@pytest.fixture(scope="module")
def island():
    """Two classes by the sign of x, and a few rows of the second all over the first."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    y = (x[:, 0] > 0).astype(int)
    x[ODD] = np.stack([-1.5 + rng.random(FEW), np.linspace(-2, 2, FEW)], axis=1)
    y[ODD] = 1
    return x, y


@pytest.mark.parametrize("learner", ["auto", "network"])
def test_rows_that_look_wrong_are_believed_where_they_are_trusted(island, learner):
    x, y = island
    plain = RobustClassifier(learner, t=0.2, epochs=20, random_state=0).fit(x, y)
    known = RobustClassifier(learner, t=0.2, epochs=20, random_state=0).fit(x, y, trusted=ODD)
    before, after = (e.predict_proba(x[ODD])[:, 1].mean() for e in (plain, known))
    assert after > before + 0.1
    assert plain.outlier_probability_[ODD].mean() > 0.4
    np.testing.assert_array_equal(known.outlier_probability_[ODD], 0)
    np.testing.assert_array_equal(known.row_weight_[ODD], 1)
    assert known.contamination_.value < plain.contamination_.value
    # New rows that say the same are not trusted by themselves.
    assert known.find_outliers(x[ODD] + 1e-3, y[ODD]).probability.min() > 0


def test_numbers_that_are_trusted_are_not_wrong():
    x = np.linspace(-1, 1, 100)[:, None]
    y = 2 * x[:, 0] + 0.1 * np.random.default_rng(0).normal(size=100)
    far = np.isin(np.arange(100), [20, 60])
    y[far] += 8
    mask = far & (np.arange(100) < 50)
    model = RobustRegressor("trees", t=0.5, random_state=0).fit(x, y, trusted=mask)
    assert model.outlier_probability_[20] == 0
    assert model.outlier_probability_[60] > 0.9


def test_one_number_that_is_far_off_and_right_leaves_the_others_as_sure():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 4))
    y = 150 + 50 * x[:, 0] + 50 * rng.normal(size=200)
    wrong = np.arange(200) < 10
    y[wrong] = np.linspace(1000, 3000, 10)
    model = RobustRegressor("trees", t=0.5, random_state=0).fit(x, y, trusted=np.arange(200) == 9)
    probability, std = model.outlier_probability_, model.fitted_.training.prediction[:, 1]
    assert probability[9] == 0
    assert probability[:9].min() > 0.5
    assert np.median(probability[:9]) > 0.99
    assert np.median(probability[10:]) < 0.1
    assert np.median(std) < 120


def test_nobody_trusted_is_the_plain_fit(island):
    x, y = island
    plain, none = (
        RobustClassifier("linear", t=0.5, epochs=5, random_state=0).fit(x, y, trusted=mask)
        for mask in (None, np.zeros(N, bool))
    )
    np.testing.assert_array_equal(plain.predict_proba(x), none.predict_proba(x))


@pytest.mark.parametrize("mask", [[True], np.full(N, 2), np.full(N, "yes"), np.full(N, np.nan)])
def test_what_is_no_mask_is_refused(island, mask):
    with pytest.raises(InvalidInput, match="trusted must say True or False of each of 150 rows"):
        RobustClassifier().fit(*island, trusted=mask)


def test_streams_and_meshes_take_none(island, tmp_path):
    x, y = island
    with pytest.raises(InvalidInput, match="trusted must be left out"):
        RobustClassifier().fit(open_stream(x, y), None, trusted=ODD)
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    with pytest.raises(InvalidInput, match="trusted must be left out"):
        RobustClassifier().fit(x, y, trusted=ODD, mesh=mesh)


def test_influence_says_that_it_does_not_know_trust(island):
    x, y = island
    model = RobustClassifier("linear", t=0.5, epochs=5, random_state=0).fit(x, y, trusted=ODD)
    with pytest.raises(InvalidInput, match="got one with trusted rows"):
        model.influence(x[:5], y[:5])
