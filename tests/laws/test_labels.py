"""The law of wrong labels against rows simulated from it, and against Bayes' rule by hand.

Statistical tests fix their seeds; their tolerances are 4 standard errors and more.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_softmax, softmax

from mtbayes.fitting import Judgement
from mtbayes.laws import WrongLabels
from mtbayes.laws.beliefs import sureness
from mtbayes.laws.given import given_by_temperature
from mtbayes.predictives import ClassPredictive, of_rows

from .conftest import labels, predictive_of


def suggested(law, predictive, y):
    """The most probable label of each row, as an estimator tells it."""
    judged = Judgement(None, None, None, *law.alternative(predictive, y))
    return judged.suggestion(y, law.outlier_probability(predictive, y))


# Labels: what is recovered.


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize(("classes", "sharper"), [(2, 2.0), (3, 2.0), (5, 0.6)])
def test_share_and_temperature_of_flipped_labels_are_recovered(classes, sharper, pair):
    p, y, wrong = labels(np.random.default_rng(1), 20_000, classes, 0.2, sharper=sharper, pair=pair)
    law = WrongLabels.fit(p, y, np.ones(len(y)))
    assert abs(law.epsilon - wrong.mean()) < 0.02
    assert abs(law.temperature / sharper - 1) < 0.1


def test_a_temperature_that_few_rows_tell_badly_they_tell_the_change_of_well():
    """Many rows fix it before members are trained on, a few how it changed then."""
    rng = np.random.default_rng(3)
    n, classes, misses = 20_000, 4, []
    for _ in range(12):
        true = rng.normal(0, 4, (n, classes))
        y = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
        y = np.where(rng.random(n) < 0.2, (y + rng.integers(1, classes, n)) % classes, y)
        before, after = (
            ClassPredictive(log_softmax(true / scale, axis=1), np.zeros(n)) for scale in (1.5, 0.8)
        )
        law, some, one = WrongLabels.fit(before, y, np.ones(n)), np.arange(1000), np.ones(1000)
        few = [of_rows(p, some) for p in (before, after)]
        found = law.of_longer(*few, y[some], one)
        alone = WrongLabels.fit(few[1], y[some], one)
        misses.append(np.log([found.temperature, alone.temperature]) - np.log(1 / 0.8))
    changed, told = np.sqrt(np.mean(np.square(misses), axis=0))
    assert changed < 0.6 * told
    assert found.epsilon == law.epsilon


def test_temperature_of_more_members_follows_from_halves():
    """Ten members where the rows were judged by two: what ten need, fitted beside them, decides."""
    rng = np.random.default_rng(8)
    n, classes, weight = 20_000, 4, np.ones(20_000)
    true = rng.normal(0, 2, (n, classes))
    y = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    wrong = rng.random(n) < 0.3
    y = np.where(wrong, (y + rng.integers(1, classes, n)) % classes, y)
    members = log_softmax(true + rng.normal(0, 1.2, (10, n, classes)), axis=-1)
    one, other, two, ten = (
        ClassPredictive.of_members(members[some]) for some in ([0], [1], [0, 1], slice(10))
    )
    law, aim = WrongLabels.fit(two, y, weight), WrongLabels.fit(ten, y, weight)
    found = law.of_more([one, other], y, weight)
    gap = np.log([law.temperature, found.temperature]) - np.log(aim.temperature)
    assert gap[0] > 0.15
    assert abs(gap[1]) < 0.3 * gap[0]  # what is left is of second order in 1/k
    assert found.epsilon == law.epsilon
    # A mean of more is never surer: halves that say so have said it by chance.
    assert law.of_more([ten, ten], y, weight).temperature == law.temperature


def test_predictive_that_is_right_is_left_as_it_is():
    p, y, _ = labels(np.random.default_rng(2), 20_000, 4, 0.0)
    law = WrongLabels.fit(p, y, np.ones(len(y)))
    assert law.epsilon < 0.003
    assert abs(law.temperature - 1) < 0.03


def test_confusion_of_pair_flips_is_recovered():
    p, y, _ = labels(np.random.default_rng(3), 20_000, 3, 0.25, pair=True)
    confusion = WrongLabels.fit(p, y, np.ones(len(y))).confusion
    truth = np.roll(np.eye(3), 1, axis=1)  # class c is given as c + 1, always
    np.testing.assert_allclose(confusion, truth, atol=0.06)


def test_confusion_of_a_matrix_of_flips_is_recovered():
    rng = np.random.default_rng(4)
    truth = np.array([[0, 0.9, 0.1], [0.5, 0, 0.5], [0.25, 0.75, 0]])
    p, true, _ = labels(rng, 40_000, 3, 0.0, scale=5.0)
    flipped = (truth[true].cumsum(axis=1) > rng.random(len(true))[:, None]).argmax(axis=1)
    y = np.where(rng.random(len(true)) < 0.2, flipped, true)
    law = WrongLabels.fit(p, y, np.ones(len(y)))
    np.testing.assert_allclose(law.confusion, truth, atol=0.06)
    np.testing.assert_array_equal(np.diag(law.confusion), 0)


def test_confusion_is_not_learned_from_few_rows_nor_from_uniform_flips():
    p, y, _ = labels(np.random.default_rng(5), 40, 5, 0.2, pair=True)
    assert WrongLabels.fit(p, y, np.ones(40)).confusion is None
    p, y, _ = labels(np.random.default_rng(5), 2000, 5, 0.2)
    assert WrongLabels.fit(p, y, np.ones(2000)).confusion is None


def test_pair_flips_that_the_predictive_has_learned_are_found():
    """A predictive that prefers the true class and knows the other explains flips tolerably."""
    rng = np.random.default_rng(8)
    true = rng.integers(10, size=1500)
    y = np.where(rng.random(1500) < 0.3, (true + 1) % 10, true)
    wide = 0.7 * rng.normal(size=(1500, 10))  # held-out rows: the predictive is noisy
    wide[np.arange(1500), true] += 6
    wide[np.arange(1500), (true + 1) % 10] += 4
    p = ClassPredictive(log_softmax(wide, axis=1), np.zeros(1500))
    law = WrongLabels.fit(p, y, np.ones(1500))
    assert law.epsilon == pytest.approx(0.3, abs=0.07)
    np.testing.assert_allclose(law.confusion, np.roll(np.eye(10), 1, axis=1), atol=0.2)


def test_confusion_does_not_raise_the_share_of_wrong_labels():
    found = []
    rng = np.random.default_rng(6)
    for _ in range(30):
        p, y, _ = labels(rng, 300, 10, 0.3, scale=4.0)
        found.append(WrongLabels.fit(p, y, np.ones(300)).epsilon)
    assert abs(np.mean(found) - 0.3) < 4 * np.std(found) / np.sqrt(30)


@pytest.mark.parametrize(("classes", "learned"), [(2, False), (3, True), (101, False)])
def test_confusion_is_learned_where_it_has_freedom_and_fits(classes, learned):
    p, y, _ = labels(np.random.default_rng(7), 500, classes, 0.3, pair=True)
    law = WrongLabels.fit(p, y, np.ones(500))
    assert (law.confusion is not None) == learned
    assert np.isfinite(law.score(p, y)).all()


# Labels: a share that depends on the row.


def one_side(rng, n, classes, epsilon):
    """Labels that are wrong in the first half of the rows alone; and which, and the true ones.

    The predictive knows the true class, and is less sure of it where labels are wrong: it has
    learned from such.
    """
    true, side = rng.integers(classes, size=n), np.arange(n) < n // 2
    wrong = side & (rng.random(n) < 2 * epsilon)
    y = np.where(wrong, (true + rng.integers(1, classes, n)) % classes, true)
    logits = rng.normal(size=(n, classes))
    logits[np.arange(n), true] += np.where(side, 3, 6)
    return ClassPredictive(log_softmax(logits, axis=1), np.zeros(n)), y, wrong, true


@pytest.mark.parametrize("epsilon", [0.2, 0.3, 0.4])
def test_share_is_found_where_mistakes_are_on_one_side_alone(epsilon):
    p, y, wrong, _ = one_side(np.random.default_rng(30), 3000, 10, epsilon)
    weight = np.ones(3000)
    law, even = WrongLabels.fit(p, y, weight), WrongLabels().beside(p, y, weight)
    assert law.slope > 1
    assert abs(law.epsilon - wrong.mean()) < 0.03
    assert abs(even.epsilon - wrong.mean()) > 0.1
    found = law.contamination(p, y, weight)
    assert found.value == pytest.approx(law.epsilon, abs=0.01)
    assert found.low < law.epsilon < found.high
    assert found.high - found.low < 0.15


def test_rows_of_the_side_without_mistakes_are_not_accused():
    p, y, wrong, _ = one_side(np.random.default_rng(31), 3000, 10, 0.3)
    said = WrongLabels.fit(p, y, np.ones(3000)).outlier_probability(p, y)
    side = np.arange(3000) < 1500
    assert said[~side].mean() < 0.03
    assert said[side].mean() == pytest.approx(wrong[side].mean(), abs=0.06)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_share_is_the_same_for_all_rows_unless_they_clearly_say_otherwise(epsilon, seed):
    p, y, _ = labels(np.random.default_rng(seed), 1500, 10, epsilon, scale=4.0, sharper=1.4)
    assert WrongLabels.fit(p, y, np.ones(1500)).slope == 0


def test_share_of_two_classes_is_the_same_for_all_rows():
    """Where mistakes are many is where labels are uncertain: nothing tells the two apart."""
    p, y, _, _ = one_side(np.random.default_rng(32), 2000, 2, 0.2)
    assert WrongLabels.fit(p, y, np.ones(2000)).slope == 0


def test_all_predictives_of_the_same_rows_get_the_doubt_of_the_first():
    p, y, wrong, true = one_side(np.random.default_rng(33), 2000, 10, 0.3)
    sure = np.full((2000, 10), -6.0)
    sure[np.arange(2000), true] = 0.0
    robust = ClassPredictive(log_softmax(sure, axis=1), np.zeros(2000))
    weight = np.ones(2000)
    law = WrongLabels.fit(p, y, weight)
    first, second = law.beside_all([p, robust], y, weight)
    assert first.score(p, y).sum() == pytest.approx(law.score(p, y).sum(), abs=0.1)
    # A robust predictive is equally sure of all rows: by itself it knows no side.
    alone = WrongLabels.fit(robust, y, weight)
    assert second.score(robust, y).sum() > alone.score(robust, y).sum() + 100
    side = np.arange(2000) < 1000
    clean = second.outlier_probability(robust, y)[~side].mean()
    assert clean < 0.01
    assert second.contamination(robust, y, weight).value == pytest.approx(wrong.mean(), abs=0.02)


@pytest.mark.parametrize("pair", [False, True])
def test_laws_that_are_known_are_those_that_would_be_fitted(pair):
    """Of labels that one predictive hardly explains, another may learn a confusion."""
    p, y, _ = labels(np.random.default_rng(34), 600, 4, 0.3, pair=pair)
    flat = ClassPredictive(log_softmax(0.1 * p.log_probs, axis=1), np.zeros(600))
    weight = np.ones(600)
    alone = [WrongLabels.fit(each, y, weight) for each in (p, flat)]
    assert (alone[0].confusion is None) is not pair
    assert alone[0].surprise > 0
    for law in alone:
        fitted, known = (law.beside_all([p, flat], y, weight, some) for some in ((), alone))
        for one, other in zip(fitted, known, strict=True):
            np.testing.assert_equal(vars(one), vars(other))


@pytest.mark.parametrize("confusion", [None, "CONFUSION"])
def test_leaning_share_is_bayes_rule_with_a_prior_for_each_row(confusion):
    confusion = None if confusion is None else CONFUSION
    law = WrongLabels(0.3, 1.0, confusion, slope=2.0, centre=0.4)
    p, y = predictive_of(PROBS), np.array([0, 2, 1])
    uniform = [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    for i, probs in enumerate(PROBS):
        doubt = -sum(q * np.log(q) for q in probs) / np.log(3)
        odds = 0.3 / 0.7 * np.exp(2.0 * (doubt - 0.4))
        each = joint(probs, y[i], odds / (1 + odds), uniform if confusion is None else confusion)
        assert law.score(p, y)[i] == pytest.approx(np.log(sum(each)), rel=1e-12)
        said = law.outlier_probability(p, y)[i]
        assert said == pytest.approx(1 - each[y[i]] / sum(each), rel=1e-12)
        assert suggested(law, p, y)[i] == np.argmax(each)
    # Another share multiplies every row's odds alike.
    one, other = (v / (1 - v) for v in (law.outlier_probability(p, y), said_at(law, 0.5, p, y)))
    np.testing.assert_allclose(other / one, 0.7 / 0.3, rtol=1e-9)


def said_at(law, epsilon, p, y):
    return law.at(epsilon).outlier_probability(p, y)


# Clean rows: what has not been seen may yet come.


def test_label_that_clean_rows_rule_out_is_called_wrong():
    p, y, _ = labels(np.random.default_rng(34), 500, 4, 0.0)
    law = WrongLabels.fit(p, y, np.ones(500))
    assert law.contamination(p, y, np.ones(500)).low == 0
    new = predictive_of([[1 - 3e-6, 1e-6, 1e-6, 1e-6]])
    assert law.outlier_probability(new, np.array([1]))[0] > 0.99
    assert law.outlier_probability(new, np.array([0]))[0] < 1e-6


# Labels: by hand.

PROBS = [[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.3, 0.3, 0.4]]
CONFUSION = np.array([[0, 0.8, 0.2], [0.5, 0, 0.5], [0.1, 0.9, 0]])


def joint(probs, y, epsilon, confusion):
    """p(true = c, given = y), term by term."""
    return [
        p * ((1 - epsilon) if c == y else epsilon * confusion[c][y]) for c, p in enumerate(probs)
    ]


@pytest.mark.parametrize("confusion", [None, CONFUSION])
@pytest.mark.parametrize("given", [0, 1, 2])
def test_outlier_probability_score_and_suggestion_are_bayes_rule(given, confusion):
    law = WrongLabels(0.3, 1.0, confusion)
    y = np.full(3, given)
    uniform = [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    expected = [joint(p, given, 0.3, uniform if confusion is None else confusion) for p in PROBS]
    p = predictive_of(PROBS)
    total = np.array([sum(each) for each in expected])
    np.testing.assert_allclose(law.score(p, y), np.log(total), rtol=1e-12)
    right = [each[given] / sum(each) for each in expected]
    np.testing.assert_allclose(law.outlier_probability(p, y), 1 - np.array(right), rtol=1e-12)
    np.testing.assert_array_equal(suggested(law, p, y), [np.argmax(each) for each in expected])


def test_temperature_is_a_power_of_the_probabilities():
    power = np.array(PROBS) ** (1 / 2.5)
    by_hand = power / power.sum(axis=1, keepdims=True)
    law = WrongLabels(0.3, 2.5, CONFUSION)
    np.testing.assert_allclose(law.calibrated(predictive_of(PROBS)).probs, by_hand, rtol=1e-12)
    y = np.array([2, 0, 1])
    same = WrongLabels(0.3, 1.0, CONFUSION).outlier_probability(predictive_of(by_hand), y)
    np.testing.assert_allclose(law.outlier_probability(predictive_of(PROBS), y), same, rtol=1e-12)


def test_score_is_a_law_over_labels():
    law = WrongLabels(0.4, 1.7, CONFUSION)
    each = [np.exp(law.score(predictive_of(PROBS), np.full(3, c))) for c in range(3)]
    np.testing.assert_allclose(np.sum(each, axis=0), 1, rtol=1e-12)


def test_outlier_probability_says_how_often_labels_are_wrong():
    p, y, wrong = labels(np.random.default_rng(8), 50_000, 4, 0.3, sharper=1.5, pair=True)
    said = WrongLabels.fit(p, y, np.ones(len(y))).outlier_probability(p, y)
    for low, high in [(0.0, 0.1), (0.1, 0.4), (0.4, 0.8), (0.8, 1.01)]:
        among = (said >= low) & (said < high)
        assert among.sum() > 500
        assert abs(said[among].mean() - wrong[among].mean()) < 0.05


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.floats(-1e4, 0), min_size=3, max_size=3), min_size=1, max_size=5),
    st.floats(0.14, 7),
    st.floats(0, 1),
)
def test_calibrated_rows_sum_to_1_keep_their_label_and_their_kinds_of_doubt(
    logits, temperature, share
):
    p = ClassPredictive(log_softmax(np.array(logits), axis=1), np.zeros(len(logits)))
    p = p._replace(aleatoric=share * p.entropy)
    found = WrongLabels(0.1, temperature).calibrated(p)
    np.testing.assert_allclose(np.exp(found.log_probs).sum(axis=1), 1, rtol=1e-9)
    best = np.take_along_axis(found.log_probs, p.labels[:, None], 1)[:, 0]
    np.testing.assert_allclose(best, found.log_probs.max(axis=1), rtol=1e-12, atol=1e-300)
    plain = (p.entropy > 1e-200) & (found.entropy > 1e-200)
    np.testing.assert_allclose(
        found.aleatoric[plain], share * found.entropy[plain], rtol=1e-6, atol=1e-200
    )
    assert (found.aleatoric <= found.entropy * (1 + 1e-9)).all()


def test_label_that_is_impossible_is_wrong_and_the_rest_stays_finite():
    sure = ClassPredictive(np.array([[0.0, -np.inf], [0.0, -1e5]]), np.zeros(2))
    law = WrongLabels(0.1, 2.0)
    np.testing.assert_array_equal(law.outlier_probability(sure, np.array([1, 1])), 1)
    np.testing.assert_array_equal(law.outlier_probability(sure, np.array([0, 0])), 0)
    assert np.isfinite(law.score(sure, np.array([1, 0]))).all()


# Weights.


@pytest.mark.parametrize("classes", [2, 4])
def test_label_of_weight_2_is_two_rows(classes):
    p, y, _ = labels(np.random.default_rng(9), 60, classes, 0.3, sharper=2.5)
    weight = np.random.default_rng(10).integers(1, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    many = ClassPredictive(p.log_probs[rows], p.aleatoric[rows])
    one, other = WrongLabels.fit(p, y, weight), WrongLabels.fit(many, y[rows], np.ones(len(rows)))
    np.testing.assert_allclose(one.epsilon, other.epsilon, rtol=1e-6)
    np.testing.assert_allclose(one.temperature, other.temperature, rtol=1e-6)
    np.testing.assert_allclose(
        one.contamination(p, y, weight),
        other.contamination(many, y[rows], np.ones(len(rows))),
        rtol=1e-5,
        atol=1e-9,
    )


@pytest.mark.parametrize("temperature", [0.135, 1.0, 7.4])
@pytest.mark.parametrize(("classes", "exact"), [(7, 1e-12), (150, 1e-4)])  # in single precision
def test_given_labels_at_a_temperature_are_the_softmax(temperature, classes, exact):
    rng = np.random.default_rng(0)
    logs = log_softmax(30 * rng.normal(size=(50, classes)), axis=1)
    logs[3, 2] = -np.inf
    y = rng.integers(classes, size=50)
    expected = softmax(logs / temperature, axis=1)[np.arange(50), y]
    found = given_by_temperature(logs, y)
    for _ in range(2):  # the memory is reused
        np.testing.assert_allclose(found(temperature), expected, rtol=exact, atol=1e-30)


def test_some_rows_tell_the_law_where_rows_and_classes_are_many(monkeypatch):
    """A quarter of them: estimates differ by no more than that, and intervals cover the truth."""
    p, y, wrong = labels(np.random.default_rng(40), 8000, 5, 0.2, sharper=1.5)
    weight = np.ones(len(y))
    whole = WrongLabels.fit(p, y, weight)
    monkeypatch.setattr("mtbayes.laws.labels._ANSWERS", 2000 * 5)
    found = WrongLabels.fit(p, y, weight)
    assert abs(found.epsilon - whole.epsilon) < 4 * np.sqrt(0.25 / 2000)
    assert 0 < abs(found.temperature / whole.temperature - 1) < 0.15
    share = found.contamination(p, y, weight)
    assert share.low < wrong.mean() < share.high
    leaning = WrongLabels().leaning(p, y, weight, doubt=p.entropy)
    assert leaning.contamination(p, y, weight).low < wrong.mean()
    assert leaning.outlier_probability(p, y).shape == y.shape


# Labels: the surest rows are sure, and what is told is a mean.


def as_sure_as_dirty_labels(rng, n, epsilon):
    """Of two classes, what a learner says that has learned dirty labels by all it can; and more.

    Returns the predictive, labels of which epsilon are flipped, and clean probabilities [n, 2].
    """
    clean = expit(rng.normal(0, 3, n))
    dirty = (1 - epsilon) * clean + epsilon * (1 - clean)
    true = rng.random(n) < clean
    given = np.where(rng.random(n) < epsilon, ~true, true).astype(int)
    said = predictive_of(np.stack([1 - dirty, dirty], axis=1))
    return said, given, np.stack([1 - clean, clean], axis=1)


@pytest.mark.parametrize("seed", range(4))
def test_a_typing_error_hides_no_wrong_labels(seed):
    """One row of a class of its own. Were wrong labels as likely of that class as of the others,
    a third of them would be, and where one is there could be no more than three."""
    rng, n = np.random.default_rng(seed), 150
    kinds = np.arange(n) % 3
    logits = 4.0 * np.eye(3)[kinds] + rng.normal(0, 1, (n, 3))
    p = softmax(logits, axis=1)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    wrong = rng.random(n) < 0.15
    y[wrong] = (y[wrong] + rng.integers(1, 3, wrong.sum())) % 3
    y[7] = 3
    said = predictive_of(np.column_stack([0.99 * p, np.full(n, 0.01)]))
    law = WrongLabels.fit(said, y, np.ones(n))
    assert abs(law.epsilon - wrong.mean()) < 0.06
    found = law.outlier_probability(said, y)
    assert (found[wrong] > 0.5).mean() > 0.6
    assert found[7] > 0.25  # it may be right: nobody knows


def test_share_of_wrong_labels_is_found_beside_a_learner_that_has_learned_them():
    """ε = 0 at temperature 1 explains such rows as well as any law: rows alone cannot tell."""
    found = []
    for seed in range(5):
        p, y, _ = as_sure_as_dirty_labels(np.random.default_rng(seed), 1000, 0.2)
        own = WrongLabels.fit(p, y, np.ones(1000))
        found.append(WrongLabels.of_pool(own.calibrated(p), y, np.ones(1000)).epsilon)
    assert abs(np.mean(found) - 0.2) < 0.05  # 0.04 is found by a prior around temperature 1 alone
    assert min(found) > 0.1


def test_clean_labels_of_sure_rows_stay_clean():
    for seed in range(10):
        p, y, _ = as_sure_as_dirty_labels(np.random.default_rng(seed), 400, 0.0)
        assert WrongLabels.of_pool(p, y, np.ones(400)).epsilon < 0.05


def test_what_is_believed_of_sure_rows_narrows_no_interval():
    """Rows whose labels are clean and that nobody can be sure of: all is open, and it is said."""
    rng = np.random.default_rng(4)
    p = predictive_of(np.tile([0.2, 0.8], (400, 1)))
    y = (rng.random(400) < 0.8).astype(int)
    law = WrongLabels.of_pool(p, y, np.ones(400))
    assert law.contamination(p, y, np.ones(400)).low < 0.01


def test_a_learner_that_tells_nothing_is_not_believed_to_be_sure():
    """The shares of the classes, of clean labels: no temperature makes a row of them sure."""
    rng = np.random.default_rng(6)
    y = (rng.random(1000) < 0.8).astype(int)
    p = predictive_of(np.tile([1 - y.mean(), y.mean()], (1000, 1)))
    assert WrongLabels.of_pool(p, y, np.ones(1000)).epsilon < 0.02


def learned_by_heart(rng, rows, classes):
    """Labels by chance, and a predictive that is sure of itself and tells nothing of them."""
    p = predictive_of(softmax(1.5 * rng.standard_normal((rows, classes)), axis=1))
    return p, rng.integers(0, classes, rows)


@pytest.mark.parametrize(("rows", "classes"), [(60, 2), (400, 2), (400, 5)])
def test_labels_by_chance_are_not_called_wrong(rows, classes):
    """Half of them contradict the predictive; nothing says that it is right. One in 20 may fail."""
    called, loss = [], []
    for seed in range(20):
        p, y = learned_by_heart(np.random.default_rng(seed), rows, classes)
        weight = np.ones(rows)
        law = WrongLabels.of_pool(p, y, weight)
        share = law.contamination(p, y, weight)
        called.append(share.value > 0.05 or share.low > 0)
        assert law.told(p).log_probs.shape == (rows, classes)
        loss.append(-law.told(p).log_probs.mean(axis=1).mean() - np.log(classes))
        if not called[-1]:
            assert law.outlier_probability(p, y).mean() < 0.1
            assert share.high > 0.4
    assert sum(called) <= 3
    before = [-learned_by_heart(np.random.default_rng(s), rows, classes)[0].log_probs.mean()
              - np.log(classes) for s in range(20)]  # fmt: skip
    assert np.mean(loss) < 0.5 * np.mean(before)


def test_rows_are_ranked_where_none_is_called_wrong():
    p, y = learned_by_heart(np.random.default_rng(1), 200, 2)
    law = WrongLabels.of_pool(p, y, np.ones(200))
    wrong = law.outlier_probability(p, y)
    given = p.probs[np.arange(200), y]
    assert (np.argsort(wrong) == np.argsort(-given)).mean() > 0.95


def test_what_is_told_is_the_mean_over_temperatures():
    law = WrongLabels(0.1, 1.0, temperatures=np.array([0.5, 2.0]), chances=np.array([0.25, 0.75]))
    odds = np.array([3.0, 0.2])
    p = predictive_of(np.stack([odds, np.ones(2)], axis=1) / (1 + odds)[:, None])
    mean = 0.25 * odds**2 / (1 + odds**2) + 0.75 * odds**0.5 / (1 + odds**0.5)
    np.testing.assert_allclose(law.told(p).probs[:, 0], mean)
    np.testing.assert_allclose(law.calibrated(p).probs, p.probs)  # judged by the best alone


def test_chances_of_temperatures_follow_bayes_rule():
    """Against a sum over a fine grid of temperatures, with the evidence of each."""
    p, y, _ = as_sure_as_dirty_labels(np.random.default_rng(3), 200, 0.2)
    _follows_bayes_rule(p, y, np.linspace(-4, 2, 601))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_chances_of_temperatures_follow_a_narrow_peak(seed):
    """Of many rows: points that lie far apart beside it have no share of it."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal((10_000, 10))
    p = predictive_of(softmax(logits, axis=1))
    y = (p.probs.cumsum(axis=1) < rng.random((10_000, 1))).sum(axis=1)
    _follows_bayes_rule(p, y, np.linspace(-0.2, 0.2, 161))


def _follows_bayes_rule(p, y, logs):
    weight = np.ones(len(y))
    law = WrongLabels().beside(p, y, weight).averaged(p, y, weight)
    prior = sureness(p, weight, law.spread)
    each = [replace(law, temperature=np.exp(v)).unforeseen(p, y, weight).evidence for v in logs]
    chance = softmax(np.array(each) + [prior(v) for v in logs])
    mean = float(chance @ logs)
    spread = float(np.sqrt(chance @ (logs - mean) ** 2))
    found = np.log(law.temperatures)
    assert law.chances @ found == pytest.approx(mean, abs=0.1 * spread)
    assert np.sqrt(law.chances @ (found - law.chances @ found) ** 2) == pytest.approx(
        spread, rel=0.1
    )


def test_what_is_told_of_clean_rows_is_better_than_what_was_learned():
    """Of learners as sure as their dirty labels, on clean rows; averaged over tables."""
    gain = []
    for seed in range(20):
        p, y, clean = as_sure_as_dirty_labels(np.random.default_rng(seed), 150, 0.2)
        law = WrongLabels.of_pool(p, y, np.ones(150))
        losses = [-(clean * one.log_probs).sum(axis=1).mean() for one in (p, law.told(p))]
        gain.append(losses[0] - losses[1])
    assert np.mean(gain) > 2 * np.std(gain) / np.sqrt(20)


def of_next_class(told, share, sure, rows=3000, classes=4):
    """A class that is told of rows, and labels of which a share is the next one; and such a law.

    sure: of rows, those whose class is all but certain, and whose label is right
    """
    rng = np.random.default_rng(0)
    said, certain = rng.integers(classes, size=rows), np.arange(rows) < sure * rows
    probs = np.full((rows, classes), (1 - told) / (classes - 1))
    probs[certain] = 0.02 / (classes - 1)
    probs[np.arange(rows), said] = np.where(certain, 0.98, told)
    y = np.where(~certain & (rng.random(rows) < share), (said + 1) % classes, said)
    law = WrongLabels(0.2, 1.0, np.roll(np.eye(classes), 1, axis=1))
    return law, (ClassPredictive(np.log(probs), np.zeros(rows)), y, np.ones(rows))


def test_confusion_may_be_a_weak_model_s_own():
    # As often wrong as it says, and always in one way: labels may all be right.
    law, rows = of_next_class(0.6, 0.4, sure=0.5)
    assert law.profiled(*rows, 0.95).low > 0.1
    assert law.contamination(*rows).low < 0.05


def test_confusion_of_a_sure_model_is_that_of_labels():
    law, rows = of_next_class(0.97, 0.2, sure=0.0)
    found = law.contamination(*rows)
    assert 0.12 < found.low < 0.2 < found.high
