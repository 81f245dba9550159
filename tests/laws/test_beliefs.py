"""What is believed before any row is seen, and whether rows tell of labels."""

import numpy as np
import pytest
from scipy.special import log_softmax

from mtbayes.laws.beliefs import Telling, sureness
from mtbayes.predictives import ClassPredictive


def predictive_of(probs):
    return ClassPredictive(np.log(probs), np.zeros(len(probs)))


def test_prior_of_a_temperature_by_hand():
    """In 9 of 10 data sets the doubt of the 19th of 20 rows is about 0.05, else uniform to 1/2."""
    top = np.linspace(0.6, 0.9, 20)
    shares = np.log([top.mean(), 1 - top.mean()])
    p = predictive_of(np.stack([top, 1 - top], axis=1))
    prior = sureness(p, np.ones(20), 0.25)

    def believed(doubt):
        return np.log(0.9 * 20 * np.exp(-20 * doubt) + 0.1 * 2)

    assert prior(0.0) == pytest.approx(believed(1 - top[18]))
    # At temperature 1/2, what the row tells beyond the shares counts twice.
    log_odds = shares[0] - shares[1]
    log_odds += 2 * (np.log(top[18] / (1 - top[18])) - log_odds)
    doubt = 1 / (1 + np.exp(log_odds))
    assert prior(-np.log(2)) == pytest.approx(-((np.log(2) / 0.25) ** 2) / 2 + believed(doubt))


def test_no_table_is_ruled_out():
    """However unsure the surest rows are, the belief costs no more than log of its odds."""
    wide, sure = (predictive_of(np.tile([a, 1 - a], (50, 1))) for a in (0.5, 1 - 1e-9))
    low, high = (sureness(p, np.ones(50), 1.0)(0.0) for p in (wide, sure))
    assert low == pytest.approx(np.log(0.2), abs=0.01)
    assert high == pytest.approx(np.log(18.2), abs=0.01)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.8, 0.15, 0.05)])
def test_labels_by_chance_have_z_of_mean_0_and_spread_1(shares):
    rng = np.random.default_rng(0)
    logits = np.log(shares) + 0.7 * rng.standard_normal((500, len(shares)))
    p = predictive_of(np.exp(log_softmax(logits, axis=1)))
    mean = p.probs.mean(axis=0)
    weight = rng.integers(1, 4, 500).astype(float)
    draws = [
        Telling.of(p, rng.choice(len(shares), 500, p=mean / mean.sum()), weight).z
        for _ in range(1000)
    ]
    assert abs(np.mean(draws)) < 0.12
    assert np.std(draws) == pytest.approx(1.0, abs=0.08)


def test_labels_that_follow_the_predictive_are_told_and_against_it_are_not():
    rng = np.random.default_rng(1)
    probs = rng.beta(2, 2, 300)
    p = predictive_of(np.stack([1 - probs, probs], axis=1))
    y = (rng.random(300) < probs).astype(int)
    for labels, z in ((y, 3.0), (1 - y, -np.inf)):
        found = Telling.of(p, labels, np.ones(300))
        assert found.z > z
    assert found.z < -3.0
    assert found.probability < 0.7


def test_probability_by_schwarz():
    """Odds of 30 before; a parameter costs the root of the rows and gains exp(z²/2).

    It is never below 0, so that half of a Gaussian around z, twice as dense, is what counts.
    """
    half = np.linspace(0, 20, 200_001)
    for z in (2.0, -1.0):
        above = np.trapezoid(np.exp(-0.5 * (half - z) ** 2), half) / np.sqrt(2 * np.pi)
        odds = 30 * np.exp(z**2 / 2) * 2 * above / np.sqrt(900)
        assert Telling(z, 900.0).probability == pytest.approx(odds / (1 + odds))
