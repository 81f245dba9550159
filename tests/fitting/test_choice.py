"""The choice of t: every row is judged once, in its place, by a fit that has not seen it."""

from typing import NamedTuple

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from mtbayes.fitting.choice import Candidate, Option, View, choose, compared, folds
from mtbayes.laws import WrongLabels, WrongTargets
from mtbayes.learners import Place
from mtbayes.learners.network import NetworkLearner
from mtbayes.likelihoods import Gaussian
from mtbayes.maths import draws
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import mean_field
from mtbayes.predictives import ClassPredictive
from mtbayes.types import Rows

KEY = jax.random.key(3)


class Named(NamedTuple):
    """All that the comparison takes of a learner."""

    name: str


class Law(NamedTuple):
    """All that the choice takes of a law."""

    epsilon: float


def view(good, wrong=0.0, explained=0.0, epsilon=0.0):
    """Rows with log probabilities `good` that one t holds for wrong with some probability."""
    good = np.asarray(good, float)
    return View(
        Law(epsilon),
        *(np.broadcast_to(v, good.shape).astype(float) for v in (explained, good, wrong)),
    )


def best_of(views, weight=None, *, dirty=False, path=(1.0, 0.7, 0.4)):
    weight = np.ones(len(views[0].good)) if weight is None else weight
    candidates = [Candidate(Named("line"), t) for t in path[: len(views)]]
    return compared(candidates, views, weight, lambda _: dirty)


# Folds.


@pytest.mark.parametrize(("n", "count"), [(3, 3), (20, 5), (4999, 5), (5000, 3)])
def test_folds_are_even_and_as_many_as_rows_ask_for(n, count):
    fold = folds(np.zeros(n), KEY)
    sizes = np.bincount(fold)
    assert fold.shape == (n,)
    assert len(sizes) == count
    assert np.ptp(sizes) <= 1


def test_folds_are_shuffled_by_the_key():
    y = np.arange(200) % 2
    fold = folds(y, KEY)
    np.testing.assert_array_equal(fold, folds(y, KEY))
    assert (fold != folds(y, jax.random.key(4))).any()
    # Rows come in sorted: a fold must not be a stretch of them, nor every fifth.
    assert len({int(v) for v in fold[:40]}) == 5
    assert (fold != np.arange(200) % 5).any()


# The best.


def test_best_t_has_the_highest_weighted_mean_log_probability():
    # Unweighted, the first is the better by far: 3 against 2.
    views = [
        view([9.0, 0.0, 0.0], epsilon=0.1),
        view([0.0, 3.0, 3.0], epsilon=0.2),
        view([0.0, 2.0, 3.0], epsilon=0.3),
    ]
    taken, table = best_of(views, np.array([1.0, 44.0, 55.0]), dirty=True)
    assert taken == 1
    assert [row["t"] for row in table] == [1.0, 0.7, 0.4]
    assert [row["learner"] for row in table] == ["line"] * 3
    assert [row["contamination"] for row in table] == [0.1, 0.2, 0.3]
    np.testing.assert_allclose([row["score"] for row in table], [0.09, 2.97, 2.53])
    assert table[1]["error"] == 0
    assert all(row["error"] > 0 for row in (table[0], table[2]))


@pytest.mark.parametrize(("dirty", "expected"), [(False, 0), (True, 1)])
def test_of_those_that_are_as_good_clean_rows_take_the_largest_t(dirty, expected):
    """Paired rows differ by 0.1 and more, but their mean by a tenth of its standard error."""
    noise = np.tile([0.5, -0.5], 50)
    good = [-1 - noise - 0.01, np.full(100, -1.0), -1 + noise - 0.01, np.full(100, -3.0)]
    taken, _ = best_of([view(v) for v in good], dirty=dirty, path=(1.0, 0.9, 0.7, 0.4))
    assert taken == expected


def test_rows_count_as_much_as_they_are_good():
    # The last row is wrong, as all agree: what a t says about it does not matter.
    wrong = [0.0, 0.0, 1.0]
    _, table = best_of([view([-1.0, -3.0, -50.0], wrong), view([-1.0, -1.0, -900.0], wrong)])
    np.testing.assert_allclose([row["score"] for row in table], [-2.0, -1.0])


def test_good_row_that_one_t_rejects_costs_that_t_its_log_probability():
    """By its own law t = 0.7 would lose next to nothing: it takes the row for a wrong one."""
    row_is_good = view([-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], explained=[-1.0, -1.0, -1.0])
    row_is_wrong = view([-1.0, -1.0, -30.0], [0.0, 0.0, 1.0], explained=[-1.0, -1.0, -3.0])
    taken, table = best_of([row_is_good, row_is_wrong], dirty=True)
    assert taken == 0
    np.testing.assert_allclose([row["score"] for row in table], [-1.0, -32 / 3], rtol=1e-6)


def test_view_that_explains_nothing_has_no_say_on_which_rows_are_good():
    rng = np.random.default_rng(0)
    wrong = rng.random(300) < 0.3
    # t = 1 knows nothing: every row is as likely wrong as any. t = 0.7 knows.
    ignorant = view(np.full(300, -0.7), 0.3, explained=-0.7)
    sharp = view(
        np.where(wrong, -20.0, -0.1), wrong.astype(float), explained=np.where(wrong, -1.2, -0.4)
    )
    taken, table = best_of([ignorant, sharp], dirty=True)
    assert taken == 1
    np.testing.assert_allclose(table[1]["score"], -0.1, atol=1e-3)


def test_error_is_that_of_a_mean_of_paired_differences():
    good = np.random.default_rng(0).normal(size=(2, 50))
    good[0] += 1
    _, table = best_of([view(v) for v in good])
    expected = np.std(good[1] - good[0]) / np.sqrt(50)
    np.testing.assert_allclose(table[1]["error"], expected, rtol=1e-12)


def test_largest_t_within_two_standard_errors_of_the_best_is_taken_unless_rows_are_dirty():
    noise = np.random.default_rng(1).normal(size=50)
    noise = (noise - noise.mean()) / noise.std()  # an error of 1/√50 = 0.14 for the mean of 50
    # The last is the best; the first is 0.4 behind, more than two errors, the second 0.2.
    views = [view(noise - 0.4), view(noise - 0.2), view(np.zeros(50))]
    assert best_of(views, dirty=False)[0] == 1
    assert best_of(views, dirty=True)[0] == 2


# All of it.


def learner_of(epochs):
    model = Model(mlp((1, 1)), Gaussian("learned"))
    return NetworkLearner(
        model,
        mean_field(),
        m=5,
        t_p=1.0,
        beta=25.0,
        epochs=epochs,
        batch_size=64,
        learning_rate=0.05,
    )


def chosen(epochs, rows, path):
    """What is chosen, and the shares of the work that were heard of on the way."""
    heard = []
    place = Place(callback=lambda p: heard.append(p.share))
    return choose([Option(learner_of(epochs), path)], rows, WrongTargets, KEY, place), heard


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
    return rows, wrong, *chosen(300, rows, (1.0, 0.5))


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
    heard = np.array(dirty[3])
    assert heard[0] > 0
    assert (np.diff(heard) > 0).all()
    assert heard[-1] == pytest.approx(1)


def test_row_does_not_judge_a_fit_that_has_seen_it():
    """A row's own target has no say in its prediction."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(25, 1)).astype(np.float32)
    y = x[:, 0] + 0.1 * rng.normal(size=25).astype(np.float32)
    other = y.copy()
    other[7] += 3
    one, two = (chosen(10, Rows(x, v, np.ones(25)), (0.9,))[0].unseen for v in (y, other))
    fold = folds(y, draws.child(KEY, 0))
    same = np.all(one.means == two.means, axis=0)
    np.testing.assert_array_equal(same, fold == fold[7])


def test_many_rows_are_compared_on_two_folds_and_all_are_judged():
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (1000, 1)).astype(np.float32)
    y = (2 * x[:, 0] + 0.3 * rng.normal(size=1000)).astype(np.float32)
    weight = np.ones(1000)
    found, heard = chosen(10, Rows(x, y, weight), (1.0, 0.9))
    assert np.corrcoef(found.unseen.mean, x[:, 0])[0, 1] > 0.95
    assert found.unseen.means.shape[1] == 1000
    np.testing.assert_equal(vars(found.law), vars(WrongTargets.fit(found.unseen, y, weight)))
    # A fold has 8 epochs at the middle t, then 2 for each candidate that it compares.
    assert len(heard) == 2 * (8 + 2 * 2) + 3 * (8 + 2)
    assert heard[-1] == pytest.approx(1)


def test_few_members_are_judged_as_many_would_be():
    """Noisy members that know more are behind in pairs and ahead in tens: halves foretell it."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=4000)

    def members(signal, noise):
        common, own = rng.normal(size=(len(y), 5)), rng.normal(size=(10, len(y), 5))
        logits = signal * np.eye(5)[y] + common + noise * own
        return np.exp(logits - logsumexp(logits, axis=2, keepdims=True))

    def said(probs):
        return ClassPredictive(np.log(probs.mean(axis=0)), np.zeros(len(y)))

    rows = Rows(None, y, np.ones(len(y)))
    found = {"two": [], "many": [], "ten": []}
    for probs in (members(2.0, 1.2), members(1.6, 0.2)):
        law = WrongLabels.fit(said(probs[:2]), y, rows.weight)
        halves = [said(probs[:1]), said(probs[1:2])]
        few = View.of_many(law, said(probs[:2]), [], rows)
        np.testing.assert_array_equal(few.good, View.of(law, said(probs[:2]), y).good)
        ten = WrongLabels.fit(said(probs), y, rows.weight)
        found["two"].append(few.good.mean())
        found["many"].append(View.of_many(law, said(probs[:2]), halves, rows).good.mean())
        found["ten"].append(View.of(ten, said(probs), y).good.mean())
    assert found["two"][0] < found["two"][1]
    assert found["many"][0] > found["many"][1]
    assert found["ten"][0] > found["ten"][1]
