"""Forests and boosting: walked as they were grown, weighed by what they have not seen."""

from threading import Barrier, Lock

import jax
import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestRegressor,
)

from mtbayes import InvalidInput
from mtbayes.learners import Place, boosting
from mtbayes.learners.boosting import BoostingLearner
from mtbayes.learners.forest import ForestLearner
from mtbayes.learners.grove import Grove, of_sklearn
from mtbayes.learners.wrapped import Wrapped
from mtbayes.types import Rows

KEY = jax.random.key(0)
_NOWHERE = Place()


def rows_of(n=200, classes=2, wrong=0, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    if classes:
        y = np.digitize(x[:, 0] + 0.3 * x[:, 1], np.linspace(-1, 1, classes + 1)[1:-1])
        y[:wrong] = (y[:wrong] + 1) % classes
    else:
        y = x[:, 0] ** 2 + 0.1 * rng.normal(size=n)
        y[:wrong] += 8.0
    return Rows(x, y, np.ones(n)), rng.normal(size=(500, 3)).astype(np.float32)


@pytest.mark.parametrize("classes", [2, 4])
def test_walked_trees_agree_with_scikit_learn(classes):
    rows, new = rows_of(classes=classes)
    forest = ExtraTreesClassifier(20, random_state=0).fit(rows.x, rows.y)
    grove = Grove.of(of_sklearn(e.tree_, e.tree_.value[:, 0]) for e in forest.estimators_)
    mean = grove.sums(new, np.zeros(20, int), 1)[0] / 20
    np.testing.assert_allclose(mean, forest.predict_proba(new), rtol=0, atol=1e-12)


def test_walked_trees_of_numbers_agree_with_scikit_learn():
    rows, new = rows_of(classes=0)
    forest = RandomForestRegressor(20, random_state=0).fit(rows.x, rows.y)
    grove = Grove.of(of_sklearn(e.tree_, e.tree_.value[:, 0]) for e in forest.estimators_)
    mean = grove.sums(new, np.zeros(20, int), 1)[0, :, 0] / 20
    np.testing.assert_allclose(mean, forest.predict(new), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("classes", "splits"), [(0, 1), (2, 1), (4, 1), (0, 0), (2, 0)])
def test_walked_boosting_agrees_with_lightgbm(classes, splits):
    rows, new = rows_of(classes=classes)
    rows, new = rows._replace(x=rows.x * splits), new * splits  # of equal rows trees are one leaf
    fold = np.arange(len(rows.y)) % 2
    learner, grown = BoostingLearner(classes), []
    plant = BoostingLearner._planted

    def kept(self, *args):
        grown.append(plant(self, *args))
        return grown[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoostingLearner, "_planted", kept)
        state = learner.crossed(rows, fold, 1.0, KEY).state(Place())
    found = learner.predictive(state, new, KEY)
    rounds = len(state.group) // (2 * max(1, classes if classes > 2 else 1))
    said = [b.predict(new.astype(float), raw_score=True, num_iteration=rounds) for b in grown[:2]]
    if classes == 0:
        np.testing.assert_allclose(found.mean, np.mean(said, axis=0), rtol=0, atol=1e-12)
    else:
        probs = [
            softmax(s, axis=1) if classes > 2 else np.stack([expit(-s), expit(s)], 1) for s in said
        ]
        np.testing.assert_allclose(found.probs, np.mean(probs, axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "learner",
    [
        ForestLearner("extra trees", 3, 1),
        ForestLearner("forest", 3, 4),
        Wrapped(HistGradientBoostingClassifier(max_iter=5), 3),
    ],
)
def test_what_is_said_of_a_fold_knows_nothing_of_its_labels(learner):
    rows, _ = rows_of(classes=3)
    fold = np.arange(len(rows.y)) % 4
    other = rows._replace(y=np.where(fold == 1, (rows.y + 1) % 3, rows.y))

    def said(rows):
        first = learner.crossed(rows, fold, 1.0, KEY)
        return [first.unseen.log_probs, first.more(0.3, first.inner, _NOWHERE).unseen.log_probs]

    for now, then in zip(said(rows), said(other), strict=True):
        np.testing.assert_array_equal(now[fold == 1], then[fold == 1])
        assert np.abs(now - then)[fold != 1].max() > 0.1


def test_weights_take_the_pull_from_wrong_rows():
    rows, _ = rows_of(400, classes=2, wrong=80)
    fold = np.random.default_rng(0).integers(0, 4, 400)
    first = ForestLearner("forest", 2, 4).crossed(rows, fold, 1.0, KEY)
    robust = first.more(0.2, first.inner, _NOWHERE)
    true = np.where(np.arange(400) < 80, 1 - rows.y, rows.y)
    loss = [-np.mean(c.unseen.log_prob(true)) for c in (first, robust)]
    assert loss[1] < 0.8 * loss[0]


def test_folds_of_boosting_grow_at_once_quietly_and_say_what_they_say_one_by_one(
    monkeypatch, capfd
):
    (rows, _), fold, grow, said = rows_of(wrong=20), np.arange(200) % 4, boosting._grow, []
    alone, both = Lock(), Barrier(2, timeout=60)  # where one fold grows after another it breaks

    def one_by_one(*args):
        with alone:
            grow(*args)

    def at_once(*args):
        both.wait()
        grow(*args)

    for how in (one_by_one, at_once):
        monkeypatch.setattr(boosting, "_grow", how)
        said.append(BoostingLearner(2).crossed(rows, fold, 1.0, KEY).unseen.log_probs)
    np.testing.assert_array_equal(*said)
    assert capfd.readouterr().out == ""


def test_no_class_is_impossible_and_a_rare_one_may_miss_a_fold():
    rows, new = rows_of(classes=2)
    y = rows.y.copy()
    y[0] = 2
    fold = np.arange(len(y)) % 4
    for learner in (ForestLearner("extra trees", 3, 1), BoostingLearner(3)):
        crossing = learner.crossed(rows._replace(y=y), fold, 1.0, KEY)
        assert np.isfinite(crossing.unseen.log_probs).all()
        assert np.isfinite(learner.predictive(crossing.state(Place()), new, KEY).log_probs).all()


def test_numbers_have_a_spread_by_row():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (800, 2)).astype(np.float32)
    y = x[:, 0] + np.where(x[:, 1] > 0, 1.0, 0.1) * rng.normal(size=800)
    rows, fold = Rows(x, y, np.ones(800)), np.arange(800) % 4
    for learner in (ForestLearner("extra trees", 0, 4), BoostingLearner(0)):
        crossing = learner.crossed(rows, fold, 1.0, KEY)
        for found in (crossing.unseen, learner.predictive(crossing.state(Place()), x, KEY)):
            wide, narrow = found.std[x[:, 1] > 0.1].mean(), found.std[x[:, 1] < -0.1].mean()
            assert wide > 2 * narrow


@pytest.mark.parametrize("field", ["feature", "left", "right", "root", "begin", "column"])
@pytest.mark.parametrize("value", [-7, 10**6])
def test_arrays_that_are_no_trees_are_refused(field, value):
    rows, new = rows_of()
    forest = ExtraTreesClassifier(3, random_state=0).fit(rows.x, rows.y)
    grove = Grove.of(of_sklearn(e.tree_, e.tree_.value[:, 0]) for e in forest.estimators_)
    broken = getattr(grove, field).copy()
    broken[0] = value
    if field == "feature" and value < 0:
        pytest.skip("a node that asks about no column is a leaf")
    with pytest.raises(InvalidInput, match="trees"):
        grove._replace(**{field: broken}).sums(new, np.zeros(3, int), 1)


def test_a_tree_that_goes_in_circles_is_refused():
    rows, new = rows_of()
    forest = ExtraTreesClassifier(1, random_state=0).fit(rows.x, rows.y)
    grove = Grove.of(of_sklearn(e.tree_, e.tree_.value[:, 0]) for e in forest.estimators_)
    left = grove.left.copy()
    left[0] = 0
    with pytest.raises(InvalidInput, match="trees"):
        grove._replace(left=left).sums(new, np.zeros(1, int), 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("value", np.nan),
        ("value", np.inf),
        ("column", None),
        ("begin", None),
        ("threshold", np.nan),
        ("left", None),
        ("root", None),
    ],
)
def test_numbers_that_no_tree_has_are_refused(field, value):
    rows, new = rows_of()
    forest = ExtraTreesClassifier(3, random_state=0).fit(rows.x, rows.y)
    grove = Grove.of(of_sklearn(e.tree_, e.tree_.value[:, 0]) for e in forest.estimators_)
    broken = getattr(grove, field).astype(float)
    broken[:1] = 0 if value is None else value  # a place that is no whole number
    with pytest.raises(InvalidInput, match="trees"):
        grove._replace(**{field: broken}).sums(new, np.zeros(3, int), 1)


@pytest.mark.parametrize("group", [np.zeros(2, int), np.array([0, 0, 9]), np.array([0, -1, 0])])
def test_groups_that_are_none_are_refused(group):
    rows, new = rows_of()
    forest = ExtraTreesClassifier(3, random_state=0).fit(rows.x, rows.y)
    grove = Grove.of(of_sklearn(e.tree_, e.tree_.value[:, 0]) for e in forest.estimators_)
    with pytest.raises(InvalidInput, match="groups"):
        grove.sums(new, group, 2)
