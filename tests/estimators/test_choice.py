"""The choice of t: every row is judged once, in its place, by a fit that has not seen it."""

from typing import NamedTuple

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbayes.criteria import Criterion
from mtbayes.estimators import choice
from mtbayes.estimators.choice import Recipe, Rows, choose, folds
from mtbayes.likelihoods import Gaussian
from mtbayes.mixtures import ClassPredictive, GaussianPredictive
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.noise import Contamination, WrongTargets
from mtbayes.posteriors import mean_field, prior

KEY = jax.random.key(3)


def rows_of(n):
    return Rows(np.zeros((n, 1)), np.zeros(n), np.ones(n))


class Known(NamedTuple):
    """A law whose scores are the predictive's means."""

    epsilon: float

    @classmethod
    def fit(cls, predictive, y, weight):
        return cls(float(predictive.means.max()))

    def score(self, predictive, y):
        return predictive.means[0]

    def contamination(self, predictive, y, weight):
        return Contamination(0.0, 0.0, 0.1)  # perhaps no wrong row at all


class Dirty(Known):
    """The same with rows that are clearly wrong."""

    def contamination(self, predictive, y, weight):
        return Contamination(0.3, 0.2, 0.4)


# Folds.


@pytest.mark.parametrize(("n", "count"), [(3, 3), (20, 5), (999, 5), (1000, 3), (5000, 2)])
def test_folds_are_even_and_as_many_as_rows_ask_for(n, count):
    fold = folds(rows_of(n), KEY)
    sizes = np.bincount(fold)
    assert fold.shape == (n,)
    assert len(sizes) == count
    assert np.ptp(sizes) <= 1


def test_folds_are_shuffled_by_the_key():
    fold = folds(rows_of(200), KEY)
    np.testing.assert_array_equal(fold, folds(rows_of(200), KEY))
    assert (fold != folds(rows_of(200), jax.random.key(4))).any()
    # Rows come in sorted: a fold must not be a stretch of them, nor every fifth.
    assert len({int(v) for v in fold[:40]}) == 5
    assert (fold != np.arange(200) % 5).any()


# Order.


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(11)), st.integers(1, 4))
def test_rows_come_back_in_their_order_whatever_the_folds(order, count):
    fold = np.array(order) % count
    number = np.arange(11.0)
    labels = [
        ClassPredictive(np.stack([number, -number], axis=1)[fold == k], 10 * number[fold == k])
        for k in range(count)
    ]
    joined = choice._in_order(labels, fold)
    np.testing.assert_array_equal(joined.log_probs, np.stack([number, -number], axis=1))
    np.testing.assert_array_equal(joined.aleatoric, 10 * number)
    members = np.stack([number, 100 + number])
    targets = [
        GaussianPredictive(members[:, fold == k], members[:, fold == k]) for k in range(count)
    ]
    np.testing.assert_array_equal(choice._in_order(targets, fold).means, members)


# The best.


def test_best_t_has_the_highest_weighted_mean_score():
    # Unweighted, the first is the better by far: 3 against 2.
    scores = np.array([[9.0, 0.0, 0.0], [0.0, 3.0, 3.0], [0.0, 2.0, 3.0]])
    weight = np.array([1.0, 44.0, 55.0])
    unseen = [GaussianPredictive(s[None], np.ones((1, 3))) for s in scores]
    recipe = Recipe(None, None, None, Known, Criterion, 1, 1, 0.1)
    rows = Rows(np.zeros((3, 1)), np.zeros(3), weight)
    found = choice._best(recipe, rows, (1.0, 0.7, 0.4), unseen)
    assert found.t == 0.7
    assert found.unseen is unseen[1]
    assert found.law == Known(3.0)
    assert [set(row) for row in found.table] == [{"t", "score", "error", "contamination"}] * 3
    assert [row["t"] for row in found.table] == [1.0, 0.7, 0.4]
    assert [row["contamination"] for row in found.table] == [9.0, 3.0, 3.0]
    np.testing.assert_allclose([row["score"] for row in found.table], [0.09, 2.97, 2.53])
    assert found.table[1]["error"] == 0
    assert all(row["error"] > 0 for row in (found.table[0], found.table[2]))


def test_error_is_that_of_a_mean_of_paired_differences():
    scores = np.random.default_rng(0).normal(size=(2, 50))
    scores[0] += 1
    unseen = [GaussianPredictive(s[None], np.ones((1, 50))) for s in scores]
    recipe = Recipe(None, None, None, Known, Criterion, 1, 1, 0.1)
    table = choice._best(recipe, rows_of(50), (1.0, 0.5), unseen).table
    expected = np.std(scores[1] - scores[0]) / np.sqrt(50)
    np.testing.assert_allclose(table[1]["error"], expected, rtol=1e-12)


def test_largest_t_within_one_standard_error_of_the_best_is_taken():
    noise = np.random.default_rng(1).normal(size=50)
    noise = (noise - noise.mean()) / noise.std()  # an error of 1/√50 = 0.14 for the mean of 50
    ahead = np.array([0.0, 0.1, 0.2])
    scores = np.zeros((3, 50))
    scores[:2] = noise
    unseen = [GaussianPredictive(s[None], np.ones((1, 50))) for s in scores + ahead[:, None]]
    recipe = Recipe(None, None, None, Known, Criterion, 1, 1, 0.1)
    # The last is the best; the first is 0.2 behind, more than an error, the second 0.1.
    found = choice._best(recipe, rows_of(50), (1.0, 0.7, 0.4), unseen)
    assert found.t == 0.7
    assert found.unseen is unseen[1]


def test_best_t_is_taken_where_rows_are_clearly_wrong():
    noise = np.random.default_rng(1).normal(size=50)
    scores = np.stack([noise, noise[::-1] + 0.01])
    unseen = [GaussianPredictive(s[None], np.ones((1, 50))) for s in scores]
    for law, t in ((Known, 1.0), (Dirty, 0.4)):
        recipe = Recipe(None, None, None, law, Criterion, 1, 1, 0.1)
        assert choice._best(recipe, rows_of(50), (1.0, 0.4), unseen).t == t


# All of it.


def recipe_of(epochs):
    model = Model(mlp((1, 1)), Gaussian("learned"))
    return Recipe(
        model,
        mean_field(),
        prior(0.0, 2.0),
        WrongTargets,
        lambda t: Criterion(m=5, t=t, beta=25.0),
        epochs,
        64,
        0.05,
    )


@pytest.fixture(scope="module")
def dirty():
    """A line of which one row in five went up by far, always at the right."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(-1, 1, 120)).astype(np.float32)
    y = 2 * x + 0.3 * rng.normal(size=120)
    wrong = np.zeros(120, bool)
    wrong[rng.choice(np.arange(50, 120), 24, replace=False)] = True
    y[wrong] += rng.uniform(4, 8, 24)
    rows = Rows(x[:, None], y.astype(np.float32), np.ones(120))
    told = []
    return rows, wrong, choose(recipe_of(300), rows, (1.0, 0.5), KEY, tell=told.append), told


def test_t_below_1_is_chosen_where_outliers_pull_at_the_line(dirty):
    rows, wrong, found, _ = dirty
    assert found.t == 0.5
    assert found.table[1]["score"] > found.table[0]["score"] + found.table[0]["error"]
    assert abs(found.law.epsilon - wrong.mean()) < 0.1
    said = found.law.outlier_probability(found.unseen, rows.y)
    assert np.mean((said > 0.5) == wrong) > 0.95


def test_unseen_rows_are_predicted_in_their_own_places(dirty):
    rows, _, found, _ = dirty
    assert found.unseen.means.shape[1] == 120
    # Five fits to about 2·x; out of order they would have nothing to do with x.
    assert np.corrcoef(found.unseen.mean, rows.x[:, 0])[0, 1] > 0.9


def test_progress_rises_from_above_0_to_1(dirty):
    told = np.array(dirty[3])
    assert told[0] > 0
    assert (np.diff(told) > 0).all()
    assert told[-1] == pytest.approx(1)


def test_row_does_not_judge_a_fit_that_has_seen_it():
    """A row's own target has no say in its prediction."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(25, 1)).astype(np.float32)
    y = x[:, 0] + 0.1 * rng.normal(size=25).astype(np.float32)
    other = y.copy()
    other[7] += 3
    one, two = (
        choose(recipe_of(10), Rows(x, v, np.ones(25)), (0.9,), KEY).unseen for v in (y, other)
    )
    fold = folds(rows_of(25), jax.random.fold_in(KEY, 0))
    same = np.all(one.means == two.means, axis=0)
    np.testing.assert_array_equal(same, fold == fold[7])
