"""Right labels that a predictive does not foresee."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import lomax

from mtbayes.laws.labels import WrongLabels
from mtbayes.laws.surprise import Surprise

from .conftest import predictive_of


@pytest.mark.parametrize(("n", "odd", "doubt"), [(200, 3, 0.1), (200, 40, 0.1), (50, 0, 0.3)])
def test_expected_share_is_that_of_the_integrals(n, odd, doubt):
    """Against both hypotheses integrated over δ and ε one by one."""
    good = np.where(np.arange(n) < odd, 0.01, 0.99)
    mean, most = max(0.1 * min(doubt, 0.1), 1 / n), 0.485

    def chance(s):
        return np.exp(np.log(good + s * (1 - 2 * good)).sum() - top)

    prior = lomax(3, scale=2 * mean).pdf  # of that mean

    top = 0.0
    top = max(np.log(chance(s)) for s in np.linspace(0.001, most, 50))
    clean = quad(lambda d: chance(d) * prior(d), 0, most, limit=200)[0]
    of_clean = quad(lambda d: d * chance(d) * prior(d), 0, most, limit=200)[0]
    dirty = dblquad(lambda d, s: chance(s) * prior(d), 0, most, 0, lambda s: s)[0]
    of_dirty = dblquad(lambda d, s: d * chance(s) * prior(d), 0, most, 0, lambda s: s)[0]
    logs = np.log(np.stack([good, 1 - good]))
    found = Surprise.of(logs, np.ones(n), doubt, most)
    assert found.share == pytest.approx((of_clean + of_dirty) / (clean + dirty), rel=0.03)
    assert found.clean == pytest.approx(clean / (clean + dirty), rel=0.03, abs=1e-3)


def sure_rows(n, surprises, seed=0):
    """A predictive that is sure of half of the rows, whose labels are others now and then."""
    rng = np.random.default_rng(seed)
    best, sure = rng.integers(0, 3, n), np.arange(n) % 2 == 0
    other = (best + rng.integers(1, 3, n)) % 3
    probs = np.where(sure, 0.01, 0.2)[:, None] * np.ones(3)
    probs[np.arange(n), best] = np.where(sure, 0.98, 0.6)
    given = np.where(rng.random(n) < np.where(sure, 0.02, 0.4), other, best)
    given = np.where(rng.random(n) < surprises, (given + rng.integers(1, 3, n)) % 3, given)
    return predictive_of(probs), given


def test_what_is_told_of_new_rows_allows_for_surprises():
    """A few labels that nobody foresees, in rows to learn from as in new ones, cost little."""
    law = WrongLabels.fit(*sure_rows(2000, 0.01), np.ones(2000))
    new, y = sure_rows(2000, 0.01, seed=1)
    told, bold = law.told(new), law.calibrated(new)
    np.testing.assert_allclose(told.probs.sum(axis=1), 1)
    assert told.log_prob(y).mean() > bold.log_prob(y).mean()
    assert told.probs.min() >= law.surprise / 2 * (1 - 1e-9)
    assert np.array_equal(told.labels, bold.labels)


def test_customers_who_leave_without_a_sign_are_not_ruled_out():
    """Eight times as many surprises as expected: a thin tail would call next to all wrong."""
    n, leaving = 3000, 0.02
    good = np.where(np.arange(n) < leaving * n, 0.001, 0.999)
    found = Surprise.of(np.log([good, 1 - good]), np.ones(n), 0.025, 0.485)
    assert found.clean > 0.25
    assert found.share > 0.25 * leaving


def test_many_wrong_labels_are_no_surprises():
    """A share of wrong labels that no doubt explains is not spread over new rows."""
    law = WrongLabels.fit(*sure_rows(2000, 0.3), np.ones(2000))
    assert law.epsilon == pytest.approx(0.3, abs=0.04)
    assert law.surprise < 0.03


def test_clean_labels_are_not_ruled_out_by_a_few_surprises():
    """The interval of wrong labels begins at 0 where a few labels are merely not foreseen."""
    few, many = (sure_rows(2000, share) for share in (0.01, 0.3))
    counted = np.ones(2000)
    assert WrongLabels.fit(*few, counted).contamination(*few, counted).low == 0
    assert WrongLabels.fit(*many, counted).contamination(*many, counted).low > 0.2
