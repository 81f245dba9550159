import numpy as np
import pytest

from mtbayes.laws.raters import Level, Raters, Ratings, usual_spread


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


def with_cell(ratings, cell):
    """The same with another number in the first rating."""
    value = ratings.value.copy()
    value[0] = cell
    return ratings._replace(value=value)


WILD = [1400.0, 1e5, 1e8, 1e30, -1e30, 1e200, -1.7e308]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cell", WILD)
def test_one_wild_rating_moves_neither_people_nor_other_rows(cell):
    """The pull of a rating is bounded in spreads, so the spreads must not be set by it."""
    calm, _, prior, _ = rated()
    wild = with_cell(calm, cell)
    law, moved = (Raters.fit(prior, r) for r in (calm, wild))
    assert np.allclose(moved.spread, law.spread, rtol=0.05)
    assert np.allclose(moved.bias, law.bias, atol=0.05)
    assert np.allclose(moved.scale, law.scale, atol=0.02)
    other = slice(1, None)
    before, after = law.truth(prior, calm).mean, moved.truth(prior, wild).mean
    assert np.abs(after - before)[other].max() < 0.1


@pytest.mark.parametrize("cell", WILD)
def test_row_of_a_wild_rating_is_as_if_that_were_missing(cell):
    calm, _, prior, _ = rated()
    wild, law = with_cell(calm, cell), Raters.fit(prior, calm)
    rest = calm._replace(row=calm.row[1:], who=calm.who[1:], value=calm.value[1:])
    expected, found = law.truth(prior, rest), law.truth(prior, wild)
    assert found.mean[0] == pytest.approx(expected.mean[0], abs=0.02)
    assert found.variance[0] == pytest.approx(expected.variance[0], rel=0.02)


def test_spread_is_the_standard_deviation_where_nothing_is_wild():
    values = np.random.default_rng(0).normal(13, 2, 60)
    assert usual_spread(values) == np.std(values)
    assert usual_spread(np.append(values, 1e30)) == pytest.approx(np.std(values))


def test_spread_of_ratings_that_are_mostly_one_number_is_that_of_the_others():
    counts = np.array([0.0] * 95 + [1, 1, 2, 2, 3])
    assert usual_spread(counts) == np.std(counts)
    assert usual_spread(np.append(counts, 1e30)) == pytest.approx(np.std(counts), rel=0.01)
    assert 0 < usual_spread(np.full(9, 13.0)) < 1e-9
