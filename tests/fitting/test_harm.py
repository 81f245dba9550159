"""Training rows ranked by harm, as a person with dirty data meets it."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import mtbayes
from mtbayes import InvalidInput, RobustClassifier, RobustRegressor
from mtbayes.data.contamination import flip_labels

PLAIN = {"m": 2, "modes": 1, "beta": 10.0}
SETTINGS = {"hidden": (6,), "t": 1.0, "epochs": 60, "random_state": 0} | PLAIN


def rows(seed, n):
    x = np.random.default_rng(seed).normal(size=(n, 2))
    return x, np.where(x[:, 0] - x[:, 1] > 0.2, "yes", "no")


@pytest.fixture(scope="module")
def problem():
    x, y = rows(0, 200)
    dirty = flip_labels(y, 0.2, seed=0)
    weight = np.where(np.arange(200) == 7, 0.0, 1.0)
    model = RobustClassifier(**SETTINGS).fit(x, dirty.data, sample_weight=weight)
    return model, x, dirty, weight, rows(1, 300)


@pytest.fixture(scope="module")
def found(problem):
    model, _, _, _, test = problem
    return model.influence(*test, members=20)


def test_wrong_rows_do_harm(problem, found):
    dirty = problem[2]
    assert roc_auc_score(dirty.touched, found.harm) > 0.9
    assert np.median(found.harm[dirty.touched]) > 0 > np.median(found.harm[~dirty.touched])
    assert found.harm[7] == 0  # weight 0: it has done nothing
    assert sorted(found.order) == list(range(200))
    assert (np.diff(found.harm[found.order]) <= 0).all()
    assert "directly" in found.status


def test_rows_stay_out_of_files_pickles_and_clones(problem, found, tmp_path):
    model, x, dirty, weight, test = problem
    model.save(tmp_path / "model")
    for copy in (mtbayes.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        with pytest.raises(InvalidInput, match="X and y must be passed"):
            copy.influence(*test)
    again = copy.influence(*test, x, dirty.data, sample_weight=weight, members=20)
    np.testing.assert_allclose(again.harm, found.harm, rtol=1e-6)
    with pytest.raises(NotFittedError):
        clone(model).influence(*test)


def test_bad_input_is_named(problem):
    model, x, dirty, _, (x_test, y_test) = problem
    with pytest.raises(InvalidInput, match="X must be the 200 rows of `fit`, got 10"):
        model.influence(x_test, y_test, x[:10], dirty.data[:10])
    with pytest.raises(InvalidInput, match="X and y must be passed together"):
        model.influence(x_test, y_test, x)
    with pytest.raises(InvalidInput, match="labels seen before, got 'maybe'"):
        model.influence(x_test[:1], ["maybe"])
    with pytest.raises(ValueError, match="NaN"):
        model.influence(np.full((1, 2), np.nan), ["yes"])
    with pytest.raises(ValueError, match="features"):
        model.influence(np.ones((1, 3)), ["yes"])
    with pytest.raises(InvalidInput, match="members must be a whole number"):
        model.influence(x_test, y_test, members=0)
    with pytest.raises(InvalidInput, match="curvature must be a Curvature, got 'hessian'"):
        model.influence(x_test, y_test, curvature="hessian")
    with pytest.raises(InvalidInput, match="sample_weight must come with X and y"):
        model.influence(x_test, y_test, sample_weight=np.ones(200))


@pytest.mark.slow
def test_a_wrong_target_does_most_harm_and_partial_fit_ends_it():
    x = np.linspace(-1, 1, 19)[:, None]  # too few for folds
    clean = x[:, 0] ** 2
    y = clean + 0.05 * np.random.default_rng(0).normal(size=19)
    y[6] = 3.0
    settings = SETTINGS | {"noise": "constant", "epochs": 150}
    model = RobustRegressor(**settings).fit(x, y)
    assert model.influence(x, clean, members=20).order[0] == 6
    model.partial_fit(x, y)
    with pytest.raises(InvalidInput, match="partial_fit"):
        model.influence(x, clean)
