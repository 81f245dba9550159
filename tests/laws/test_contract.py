"""What every law of wrong rows promises, whatever is wrong: labels, targets or points."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from mtbayes.laws import PointPredictive, WrongLabels, WrongPoints, WrongTargets
from mtbayes.predictives import ClassPredictive, GaussianPredictive, beside_trust, of_rows

N = 400
WRONG = 0.2
TOUCHED = np.arange(N) < WRONG * N


def labels():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(3, 0.1), N) + 1e-4
    probs /= probs.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=p) for p in probs])
    given = np.where(TOUCHED, (y + 1 + rng.integers(2, size=N)) % 3, y)
    return WrongLabels, ClassPredictive(np.log(probs), np.zeros(N)), given


def targets():
    rng = np.random.default_rng(1)
    mean = rng.normal(size=(1, N))
    y = mean[0] + 0.1 * rng.normal(size=N)
    given = np.where(TOUCHED, rng.uniform(-4, 4, N), y)
    return WrongTargets, GaussianPredictive(mean, np.full((1, N), 0.1)), given


def points():
    rng = np.random.default_rng(2)
    x = np.where(TOUCHED[:, None], rng.uniform(-30, 30, (N, 2)), rng.normal(size=(N, 2)))
    squares = np.square(x).sum(axis=1)[None]
    return WrongPoints, PointPredictive(squares, np.full((1, 1), -np.log(2 * np.pi))), x


CASES = pytest.mark.parametrize("make", [labels, targets, points])


@CASES
def test_it_finds_the_share_and_the_rows(make):
    kind, predictive, y = make()
    law = kind.fit(predictive, y, np.ones(N))
    share = law.contamination(predictive, y, np.ones(N))
    assert share.low < WRONG < share.high
    wrong = law.outlier_probability(predictive, y)
    assert roc_auc_score(TOUCHED, wrong) > 0.9


@CASES
def test_a_row_is_good_or_wrong(make):
    """p(row) = (1-ε) p(row if good) + ε p(row if wrong), and Bayes' rule says which."""
    kind, predictive, y = make()
    law = kind.fit(predictive, y, np.ones(N))
    whole, good = law.score(predictive, y), law.good(predictive, y)
    wrong = law.outlier_probability(predictive, y)
    np.testing.assert_allclose(np.exp(good - whole) * (1 - law.epsilon), 1 - wrong, atol=1e-9)


@CASES
def test_odds_grow_with_the_share_by_bayes_rule(make):
    kind, predictive, y = make()
    law = kind.fit(predictive, y, np.ones(N))
    odds = []
    for share in (0.1, 0.5):
        p = law.at(share).outlier_probability(predictive, y)
        assert law.at(share).epsilon == pytest.approx(share)
        odds.append(np.clip(p, 1e-12, 1 - 1e-12) / (1 - np.clip(p, 1e-12, 1 - 1e-12)))
    usual = (odds[1] > 1e-9) & (odds[1] < 1e9)
    np.testing.assert_allclose(odds[1][usual], 9 * odds[0][usual], rtol=1e-6)


@CASES
def test_without_rows_to_learn_from_none_is_wrong(make):
    kind, predictive, y = make()
    law = kind.none(y, np.ones(N))
    assert law.epsilon == 0
    np.testing.assert_array_equal(law.outlier_probability(predictive, y), 0)


@CASES
def test_what_is_calibrated_is_what_is_good(make):
    kind, predictive, y = make()
    law = kind.fit(predictive, y, np.ones(N))
    own = law.calibrated(predictive).log_prob(y)
    np.testing.assert_allclose(own, law.good(predictive, y), rtol=1e-9, atol=1e-9)


@CASES
def test_laws_beside_several_predictives_are_as_many(make):
    kind, predictive, y = make()
    law = kind.fit(predictive, y, np.ones(N))
    several = law.beside_all([predictive, predictive], y, np.ones(N))
    assert [type(each) for each in several] == [kind, kind]
    assert several[0].epsilon == several[1].epsilon == pytest.approx(law.epsilon)


@pytest.mark.parametrize("make", [labels, targets])
def test_rows_that_are_trusted_count_as_good(make):
    law, predictive, y = make()
    weight, known = np.ones(N), predictive._replace(trusted=TOUCHED)
    plain, told = law.fit(predictive, y, weight), law.fit(known, y, weight)
    assert plain.epsilon > 0.1
    assert told.epsilon < 0.02  # all that is wrong is vouched for
    np.testing.assert_array_equal(told.outlier_probability(known, y)[TOUCHED], 0)
    np.testing.assert_array_equal(
        told.outlier_probability(known, y)[~TOUCHED],
        told.outlier_probability(predictive, y)[~TOUCHED],
    )
    # A row that is good for certain is explained by (1 - ε) times the predictive.
    np.testing.assert_allclose(
        told.score(known, y)[TOUCHED],
        np.log(1 - told.epsilon) + told.good(known, y)[TOUCHED],
        rtol=1e-6,
    )
    assert (
        told.contamination(known, y, weight).high < plain.contamination(predictive, y, weight).low
    )


@pytest.mark.parametrize("make", [labels, targets])
def test_some_rows_of_a_predictive_are_told_as_among_all(make):
    _, predictive, y = make()
    some = np.array([7, 3, 200])
    few = of_rows(beside_trust(predictive, TOUCHED), some)
    np.testing.assert_array_equal(few.log_prob(y[some]), predictive.log_prob(y)[some])
    np.testing.assert_array_equal(few.trusted, TOUCHED[some])


@CASES
def test_members_trained_on_that_say_the_same_have_the_same_law(make):
    kind, predictive, y = make()
    law = kind.fit(predictive, y, np.ones(N))
    again = law.of_longer(predictive, predictive, y, np.ones(N))
    np.testing.assert_allclose(again.good(predictive, y), law.good(predictive, y), rtol=1e-6)
