"""Shares of wrong rows: an interval holds the truth as often as it says.

Statistical tests fix their seeds; their tolerances are 4 standard errors and more.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from mtbayes.laws import WrongLabels, WrongTargets, mixture_shares
from mtbayes.laws.estimation import SLOPE_SPREAD, leaned

from .conftest import labels, predictive_of, targets

# With a coverage of 95 %, fewer than 84 of 100 intervals hold the truth once in 100 000 times.
SETS = 100
ENOUGH = int(stats.binom.ppf(3e-5, SETS, 0.95))


@pytest.mark.parametrize(
    ("n", "classes", "scale", "pair"),
    [(300, 2, 3.0, False), (300, 10, 4.0, False)],
)
def test_interval_of_wrong_labels_holds_the_truth_as_often_as_it_says(n, classes, scale, pair):
    rng, weight, held = np.random.default_rng(13), np.ones(n), 0
    for _ in range(SETS):
        p, y, _ = labels(rng, n, classes, 0.2, scale=scale, sharper=1.5, pair=pair)
        value, low, high = WrongLabels.fit(p, y, weight).contamination(p, y, weight)
        assert 0 <= low <= value <= high <= 1
        held += low <= 0.2 <= high
    assert held >= ENOUGH
    assert high - low < 0.35  # and it says something


def test_interval_of_wrong_targets_holds_the_truth_as_often_as_it_says():
    """The wrong rows' law, which is held fixed, is learned from other rows."""
    rng, weight, held = np.random.default_rng(14), np.ones(200), 0
    p, y, _ = targets(rng, 5000, 0.2)
    law = WrongTargets.fit(p, y, np.ones(5000))
    for _ in range(SETS):
        p, y, _ = targets(rng, 200, 0.2)
        value, low, high = law.contamination(p, y, weight)
        assert 0 <= low <= value <= high <= 1
        held += low <= 0.2 <= high
    assert held >= ENOUGH
    assert high - low < 0.35


def test_interval_of_clean_rows_reaches_down_to_0():
    # At 0 the truth is an end of the range: an interval leaves it out in 2.5 % of sets.
    rng, weight, lows = np.random.default_rng(15), np.ones(300), []
    p, y, _ = targets(rng, 2000, 0.1)
    law = WrongTargets.fit(p, y, np.ones(2000))
    for _ in range(40):
        p, y, _ = labels(rng, 300, 3, 0.0, sharper=1.5)
        lows.append(WrongLabels.fit(p, y, weight).contamination(p, y, weight).low)
        p, y, _ = targets(rng, 300, 0.0)
        lows.append(law.contamination(p, y, weight).low)
    assert np.count_nonzero(lows) <= stats.binom.ppf(1 - 1e-4, 80, 0.025)


def test_interval_narrows_as_the_root_of_the_rows_and_widens_with_the_level():
    rng, width = np.random.default_rng(16), {}
    for n in (500, 8000):
        p, y, _ = labels(rng, n, 3, 0.2)
        law = WrongLabels.fit(p, y, np.ones(n))
        for level in (0.68, 0.95):
            found = law.profiled(p, y, np.ones(n), level)
            width[n, level] = found.value - found.low
    assert width[500, 0.95] / width[8000, 0.95] == pytest.approx(4, rel=0.2)
    ratio = stats.norm.ppf(0.975) / stats.norm.ppf(0.84)
    assert width[8000, 0.95] / width[8000, 0.68] == pytest.approx(ratio, rel=0.1)


def test_interval_is_that_of_the_rows_it_is_asked_about():
    """More rows, dirtier than those of the fit: their own share, not the fit's."""
    rng, weight = np.random.default_rng(17), np.ones(5000)
    first, y, _ = labels(rng, 5000, 3, 0.05)
    law = WrongLabels.fit(first, y, weight)
    more, y, wrong = labels(rng, 5000, 3, 0.4)
    found = law.contamination(more, y, weight)
    assert abs(found.value - wrong.mean()) < 0.04
    assert found.low < wrong.mean() < found.high
    first, y, _ = targets(rng, 5000, 0.05)
    law = WrongTargets.fit(first, y, weight)
    more, y, wrong = targets(rng, 5000, 0.4)
    found = law.contamination(more, y, weight)
    assert abs(found.value - wrong.mean()) < 0.04


def test_predictive_that_knows_nothing_cannot_tell_the_share():
    y = np.random.default_rng(18).integers(0, 4, 500)
    p = predictive_of(np.full((500, 4), 0.25))
    found = WrongLabels.fit(p, y, np.ones(500)).contamination(p, y, np.ones(500))
    assert found.low == 0
    assert found.high == pytest.approx(0.75, rel=0.04)  # where labels would tell nothing


@pytest.mark.parametrize("k", [2, 3, 5])
def test_shares_of_a_mixture_are_the_best_there_are(k):
    """A share above 0 has a slope of 1, Karush, Kuhn and Tucker say, and one of 0 at most that."""
    rng = np.random.default_rng(k)
    logs = rng.normal(size=(k, 200)) * 4 + np.linspace(2, -2, k)[:, None]
    logs[:, -1] = np.where(np.arange(k) == k - 1, 0.0, -np.inf)  # a row that one alone explains
    weight = rng.uniform(0.2, 2, 200)
    shares = mixture_shares(logs, weight)
    densities = np.exp(logs)
    slope = densities @ (weight / weight.sum() / (shares @ densities))
    assert shares.sum() == pytest.approx(1)
    assert shares[-1] > 0
    np.testing.assert_allclose(slope[shares > 1e-9], 1, atol=1e-4)
    assert np.all(slope < 1 + 1e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_level_and_slope_of_doubt_are_the_best_there_are(epsilon):
    """No point of a fine grid explains rows better, its prior included."""
    rng = np.random.default_rng(19)
    p, y, _ = labels(rng, 200, 4, epsilon)
    good = p.log_probs[np.arange(200), y]
    logs = np.stack([good, np.log1p(-np.exp(good)) - np.log(3)])
    doubt, weight = p.entropy / np.log(4), rng.uniform(0.2, 2, 200)
    (level, slope), score = leaned(logs, weight, doubt)
    levels, slopes = np.meshgrid(np.linspace(-15, 15, 301), np.linspace(0, 30, 301))
    odd = expit(levels[..., None] + slopes[..., None] * doubt)
    mixed = np.log((1 - odd) * np.exp(logs[0]) + odd * np.exp(logs[1]))
    prior = 0.5 * (slopes / SLOPE_SPREAD) ** 2 / weight.sum()
    scores = np.average(mixed, axis=2, weights=weight) - prior
    assert -15 <= level <= 15
    assert 0 <= slope <= 30
    assert scores.max() - 1e-9 < score < scores.max() + 1e-3
