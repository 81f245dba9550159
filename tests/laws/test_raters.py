import numpy as np

from mtbayes.laws.raters import Level, Raters, Ratings


def rated(n=400, seed=0, wild=0.0):
    """Ratings by six people with biases, scales and spreads, the truth, and what features say."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(10, 3, n)
    truth = mean + rng.normal(size=n)
    bias, scale = np.array([-1.5, -0.5, 0, 0, 0.5, 1.5]), np.array([1, 0.8, 1, 1, 1.2, 1])
    spread = np.array([0.3, 0.5, 1, 1, 2, 4])
    row = np.repeat(np.arange(n), 3)
    who = np.concatenate([rng.permutation(6)[:3] for _ in range(n)])
    value = 10 + bias[who] + scale[who] * (truth[row] - 10)
    value = value + spread[who] * rng.normal(size=len(row))
    value = np.where(rng.random(len(row)) < wild, rng.uniform(-50, 70, len(row)), value)
    prior = Level(mean, np.full(n, 1.5))
    return Ratings(row, who, value, n, 6), truth, prior, (bias, scale, spread)


def error(found, truth):
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def mean_of(ratings):
    return np.bincount(ratings.row, ratings.value) / np.bincount(ratings.row)


def test_consensus_is_nearer_than_the_mean_of_ratings_and_the_features():
    ratings, truth, prior, _ = rated()
    found = Raters.fit(prior, ratings).truth(prior, ratings).mean
    assert error(found, truth) < 0.6 * error(mean_of(ratings), truth)
    assert error(found, truth) < 0.8 * error(prior.mean, truth)


def test_biases_scales_and_spreads_are_found():
    ratings, _, prior, (bias, scale, spread) = rated(1500)
    law = Raters.fit(prior, ratings)
    assert np.abs(law.bias + (law.scale - 1) * 10 - bias).max() < 0.3
    assert np.abs(law.scale - scale).max() < 0.15
    assert np.abs(np.log(1.15 * law.spread / spread)).max() < 0.6


def test_wild_ratings_hardly_matter():
    calm, truth, prior, _ = rated()
    wild, *_ = rated(wild=0.05)
    found = [error(Raters.fit(prior, r).truth(prior, r).mean, truth) for r in (calm, wild)]
    assert found[1] < 1.3 * found[0]
    assert error(mean_of(wild), truth) > 2 * found[1]


def test_units_do_not_matter():
    ratings, _, prior, _ = rated(200)
    other = ratings._replace(value=1000 * ratings.value)
    wide = Level(1000 * prior.mean, 1e6 * prior.variance)
    found = Raters.fit(prior, ratings).truth(prior, ratings).mean
    again = Raters.fit(wide, other).truth(wide, other).mean
    assert np.allclose(1000 * found, again, rtol=1e-3)


def test_low_is_below_high():
    ratings, _, prior, _ = rated(100)
    low, high = Raters.fit(prior, ratings).interval()
    assert (low < high).all()
