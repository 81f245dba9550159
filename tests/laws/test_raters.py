import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from mtbayes.laws.raters import (
    Level,
    Raters,
    Ratings,
    _common,
    around_centre,
    usual_spread,
)


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


def test_people_who_differ_count_alike_in_the_centre_however_precise():
    value, variance = np.array([-1.0, 0.0, 1.0]), np.array([1e-8, 1e-4, 1e-2])
    assert np.allclose(around_centre(value, variance, 1.0), value, atol=0.02)


def test_people_who_agree_count_by_what_is_open_of_them():
    """By number the poor one would move the others by .05, by precision by .0004."""
    own = around_centre(np.array([0, 0, 0.15]), np.array([1e-4, 1e-4, 0.02]), 1.0)
    assert np.abs(own[:2]).max() < 0.015
    assert own[2] < 0.05


def test_one_precise_person_far_from_the_rest_does_not_rule():
    value = np.array([5.0, *np.random.default_rng(0).normal(0, 0.1, 8)])
    own = around_centre(value, np.array([1e-8] + [0.01] * 8), 1.0)
    assert own[0] == pytest.approx(5, abs=0.1)
    assert np.abs(own[1:]).max() < 0.1


def test_centre_is_that_of_all_widths_and_centres_by_their_probability():
    """Beside sums over a fine grid of centres and widths; nothing is open of the values."""
    value = np.array([-0.5, -0.3, 0.1, 0.2, 0.4, 2.0])
    centre, log_width = np.meshgrid(np.linspace(-3, 4, 1401), np.linspace(-7, 2, 181))
    width = np.exp(log_width)
    off = (value[:, None, None] - centre) / width
    log_p = stats.t(4).logpdf(off).sum(axis=0) - 6 * log_width
    log_p += stats.halfcauchy(scale=0.3).logpdf(width) + log_width
    p = np.exp(log_p - log_p.max())
    found = value - around_centre(value, np.full(6, 1e-12), 1.0)
    assert np.ptp(found) < 1e-6
    assert found[0] == pytest.approx((p * centre).sum() / p.sum(), abs=0.03)
    assert abs(found[0] - value.mean()) > 0.1


def rated_by(bias, spread, seed=0, n=176):
    """Ratings of every row by people with biases and spreads, the truth, and what features say."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(13, 0.7, n)
    truth = mean + 0.4 * rng.normal(size=n)
    people = len(bias)
    value = truth[:, None] + bias + np.asarray(spread) * rng.normal(size=(n, people))
    row, who = np.divmod(np.arange(n * people), people)
    return Ratings(row, who, value.ravel(), n, people), truth, Level(mean, np.full(n, 0.16))


def test_poor_rater_does_not_tilt_the_good():
    """The mean of two with a spread of .1 is off by .071; by number of ratings it was .087."""
    errors = []
    for seed in range(6):
        ratings, truth, prior = rated_by(np.zeros(3), [0.1, 0.1, 2], seed)
        found = Raters.fit(prior, ratings).truth(prior, ratings).mean
        errors.append(error(found, truth))
    assert np.mean(errors) < 1.17 * 0.1 / np.sqrt(2)


@pytest.mark.parametrize("seed", range(3))
def test_precise_rater_with_a_bias_does_not_rule(seed):
    """Measured on the one, all would be off by 1; with each alike by .2."""
    ratings, truth, prior = rated_by(np.array([1.0, 0, 0, 0, 0]), [0.05, 0.5, 0.5, 0.5, 0.5], seed)
    found = Raters.fit(prior, ratings).truth(prior, ratings).mean
    assert error(found, truth) < 0.15


@pytest.mark.parametrize("hold", [2.0, 15.0])
def test_common_spread_explains_squares_best(hold):
    squares, counts = np.array([50.0, 140.0, 3200.0]), np.array([200, 140, 200])

    def loss(log_common):
        # Sums of squares whose variance is an inverse gamma variable: a ratio of two of its
        # normalisers, of the prior's and of the posterior's.
        rate = 0.5 * hold * np.exp(log_common)
        before, after = 0.5 * hold, 0.5 * (hold + counts)
        return -np.sum(before * np.log(rate) - after * np.log(rate + 0.5 * squares))

    best = minimize_scalar(loss, bounds=(-3, 4), method="bounded", options={"xatol": 1e-8})
    assert _common(squares, counts, hold) == pytest.approx(np.exp(best.x), rel=1e-3)


def test_careless_person_does_not_make_a_precise_one_careless():
    rng = np.random.default_rng(3)
    truth = rng.normal(0, 5, 200)
    said = truth[:, None] + rng.normal(size=(200, 3)) * [0.5, 1.0, 0.5]
    careless = truth + rng.normal(0, 100, 200)
    prior = Level(truth + rng.normal(0, 1.5, 200), np.full(200, 1.5**2))
    spreads = []
    for columns in (said, np.column_stack([said, careless])):
        row, who = np.divmod(np.arange(columns.size), columns.shape[1])
        ratings = Ratings(row, who, columns.ravel(), 200, columns.shape[1])
        spreads.append(Raters.fit(prior, ratings).spread[:3])
    np.testing.assert_allclose(spreads[1], spreads[0], rtol=0.1)


def astray(ratings, prior):
    law = Raters.fit(prior, ratings)
    return law.astray(prior, law.truth(prior, ratings), ratings)


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0.0, 0.03), (0.1, 0.05, 0.12)])
def test_rows_of_which_every_rating_is_wild_are_about_as_many_as_told(share, low, high):
    ratings, _, prior, _ = rated(3000, seed=1, wild=share)
    told = []
    for people in (1, 2):  # who rate a row
        some = np.arange(9000).reshape(3000, 3)[:, :people].ravel()
        told.append(astray(taken(ratings, some), prior).mean())
    assert low <= told[0] < high
    assert told[1] < share**2 + 0.003


def test_people_who_agree_speak_for_an_unusual_row_and_one_person_does_not():
    ratings, _, prior, _ = rated(wild=0.05)
    far = ratings._replace(value=np.where(ratings.row == 0, prior.mean[0] + 25, ratings.value))
    alone = np.flatnonzero((far.row > 0) | (np.arange(len(far.row)) == 0))
    three, one = (astray(said, prior)[0] for said in (far, taken(far, alone)))
    assert three < 0.05 < 0.25 < one


def taken(ratings, some):
    """Ratings of the same rows by the same people, but for those that are left out."""
    return ratings._replace(**{k: getattr(ratings, k)[some] for k in ("row", "who", "value")})
