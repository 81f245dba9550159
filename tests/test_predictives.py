"""Predictive mixtures against the same numbers worked out another way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mtbayes import predictives
from mtbayes.errors import InvalidInput
from mtbayes.likelihoods import Categorical
from mtbayes.predictives import ClassPredictive, GaussianPredictive, in_order

KEY = jax.random.key(7)
RNG = np.random.default_rng(3)


def gaussian(means, stds):
    """One row, from lists of members."""
    return GaussianPredictive(np.array(means, float)[:, None], np.array(stds, float)[:, None])


# --- Gaussian mixtures ----------------------------------------------------------------------------

MEANS, STDS = RNG.normal(0, 3, (6, 5)), RNG.uniform(0.2, 2, (6, 5))
MANY = GaussianPredictive(MEANS, STDS)
BIMODAL = [
    ([-3.0, 5.0], [1.0, 0.5]),
    ([-1e3, 1e3], [1e-3, 1e-3]),  # far modes, little spread
    ([-1e3, 0.0, 1e3], [1.0, 1e-6, 1.0]),
    ([0.0, 1e6], [1e-9, 1.0]),
    ([0.0] * 50, [1e-4] * 49 + [1e4]),  # a spike in a broad floor
    ([2.0], [3.0]),
]
LEVELS = np.array([1e-6, 1e-3, 0.05, 0.31, 0.5, 0.77, 0.95, 1 - 1e-6])


def test_log_density_and_cdf_are_those_of_a_mixture():
    y = RNG.normal(0, 4, 5)
    members = stats.norm(MEANS, STDS)
    np.testing.assert_allclose(MANY.log_prob(y), np.log(members.pdf(y).mean(axis=0)), rtol=1e-12)
    np.testing.assert_allclose(MANY.cdf(y), members.cdf(y).mean(axis=0), rtol=1e-12)


def test_log_density_far_out_does_not_underflow():
    far = gaussian([0.0, 1.0], [1.0, 1.0]).log_prob(1e4)
    expected = stats.norm.logpdf(1e4, 1.0) - np.log(2)  # the other member is e^-10000 of it
    np.testing.assert_allclose(far, [expected], rtol=1e-12)


def test_points_may_be_one_a_row_many_a_row_or_one_for_all():
    grid = np.linspace(-5, 5, 7)
    every = MANY.log_prob(np.broadcast_to(grid, (5, 7)))
    assert every.shape == (5, 7)
    for j, point in enumerate(grid):
        np.testing.assert_allclose(MANY.log_prob(np.full(5, point)), every[:, j], rtol=1e-14)
        np.testing.assert_allclose(MANY.log_prob(point), every[:, j], rtol=1e-14)
    # A density: it integrates to 1, here by the trapezium rule to its own accuracy.
    fine = np.linspace(-30, 30, 6001)
    total = np.trapezoid(np.exp(MANY.log_prob(np.broadcast_to(fine, (5, 6001)))), fine)
    np.testing.assert_allclose(total, 1.0, atol=1e-9)


def test_blocks_of_rows_change_nothing(monkeypatch):
    y = RNG.normal(0, 4, (5, 3))
    whole = MANY.log_prob(y), MANY.cdf(y), MANY.quantile(LEVELS)
    monkeypatch.setattr(predictives, "_AT_ONCE", 40)
    for one, two in zip(whole, (MANY.log_prob(y), MANY.cdf(y), MANY.quantile(LEVELS)), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("means", "stds"), BIMODAL)
def test_quantile_inverts_the_cdf(means, stds):
    mixture = gaussian(means, stds)
    found = mixture.quantile(LEVELS)
    assert found.shape == (1, len(LEVELS))
    # An independent cdf; in a tail the error is measured against the tail.
    cdf = stats.norm.cdf(found, np.array(means)[:, None], np.array(stds)[:, None]).mean(axis=0)
    upper = stats.norm.sf(found, np.array(means)[:, None], np.array(stds)[:, None]).mean(axis=0)
    np.testing.assert_allclose(cdf, LEVELS, rtol=1e-6)
    np.testing.assert_allclose(upper, 1 - LEVELS, rtol=1e-6)
    np.testing.assert_allclose(mixture.cdf(found)[0], LEVELS, atol=1e-6)
    assert np.all(np.diff(found) >= 0)


def test_quantiles_of_many_rows_at_once():
    found = MANY.quantile(LEVELS)
    np.testing.assert_allclose(MANY.cdf(found), np.broadcast_to(LEVELS, found.shape), rtol=1e-9)
    median = MANY.quantile(0.5)
    assert median.shape == (5,)
    np.testing.assert_array_equal(median, MANY.quantile([0.5])[:, 0])


def test_quantile_in_single_precision_members():
    single = GaussianPredictive(MEANS.astype(np.float32), STDS.astype(np.float32))
    found = single.quantile(LEVELS)
    assert found.dtype == np.float64
    np.testing.assert_allclose(single.cdf(found), np.broadcast_to(LEVELS, found.shape), rtol=1e-9)


def test_one_gaussian_has_its_own_quantiles():
    found = gaussian([2.0], [3.0]).quantile(LEVELS)[0]
    np.testing.assert_allclose(found, stats.norm(2, 3).ppf(LEVELS), rtol=1e-12)


def test_quantile_of_nan_members_ends():
    assert np.isnan(gaussian([np.nan, 1.0], [1.0, 1.0]).quantile(0.3)).all()


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.999])
def test_interval_covers_exactly_where_mean_and_std_do_not(coverage):
    mixture = gaussian([-4.0, -4.0, 6.0], [0.5, 1.0, 0.3])
    low, high = mixture.interval(coverage)
    np.testing.assert_allclose(mixture.cdf(low), (1 - coverage) / 2, rtol=1e-9)
    np.testing.assert_allclose(1 - mixture.cdf(high), (1 - coverage) / 2, rtol=1e-9)
    half = stats.norm.ppf((1 + coverage) / 2) * mixture.std
    naive = mixture.cdf(mixture.mean + half) - mixture.cdf(mixture.mean - half)
    assert abs(naive[0] - coverage) > 5e-4


def test_law_of_total_variance_and_sample():
    """400,000 draws a row, 5 rows: mean, variance and 3 levels within 5 standard errors each.

    25 comparisons, a failure rate of 1e-5 were the seed not fixed.
    """
    size = 400_000
    draws = MANY.sample(KEY, size)
    assert draws.shape == (size, 5)
    np.testing.assert_allclose(MANY.variance, MANY.aleatoric + MANY.epistemic, rtol=1e-14)
    np.testing.assert_allclose(MANY.aleatoric, (STDS**2).mean(axis=0), rtol=1e-12)
    assert np.all(np.abs(draws.mean(axis=0) - MANY.mean) < 5 * MANY.std / np.sqrt(size))
    fourth = np.mean((draws - MANY.mean) ** 4, axis=0)
    error = np.sqrt((fourth - MANY.variance**2) / size)
    assert np.all(np.abs(draws.var(axis=0) - MANY.variance) < 5 * error)
    for level in (0.1, 0.5, 0.9):
        below = (draws < MANY.quantile(level)).mean(axis=0)
        assert np.all(np.abs(below - level) < 5 * np.sqrt(level * (1 - level) / size))


def test_rows_and_draws_of_a_sample_are_independent():
    """Two equal rows of one member: their correlation over 100,000 draws is below 5/√100,000."""
    draws = GaussianPredictive(np.array([[-9.0] * 2, [9.0] * 2]), np.ones((2, 2))).sample(
        KEY, 100_000
    )
    assert abs(np.corrcoef(draws.T)[0, 1]) < 5 / np.sqrt(100_000)


# --- classes --------------------------------------------------------------------------------------

LOGITS = RNG.normal(0, 2, (7, 6, 3))
MEMBERS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=-1, keepdims=True)


def classes(probs=MEMBERS):
    made = jax.jit(ClassPredictive.of_members)(np.log(probs))
    return jax.tree.map(np.asarray, made)


def test_class_mixture_by_the_formulas():
    got, mean = classes(), MEMBERS.mean(axis=0)
    np.testing.assert_allclose(got.probs, mean, rtol=1e-5)
    np.testing.assert_allclose(got.probs.sum(axis=-1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(got.labels, mean.argmax(axis=-1))
    y = np.array([0, 1, 2, 2, 1, 0])
    np.testing.assert_allclose(got.log_prob(y), np.log(mean[np.arange(6), y]), atol=1e-5)
    total = -(mean * np.log(mean)).sum(axis=-1)
    each = -(MEMBERS * np.log(MEMBERS)).sum(axis=-1)
    np.testing.assert_allclose(got.entropy, total, rtol=1e-5)
    np.testing.assert_allclose(got.aleatoric, each.mean(axis=0), rtol=1e-5)
    # Mutual information as a mean divergence of the members from their mean.
    information = (MEMBERS * np.log(MEMBERS / mean)).sum(axis=-1).mean(axis=0)
    np.testing.assert_allclose(got.epistemic, information, atol=1e-5)


def test_members_who_agree_leave_no_epistemic_doubt():
    got = classes(np.repeat(MEMBERS[:1], 5, axis=0))
    assert np.all(got.epistemic >= 0)
    assert np.all(got.epistemic < 1e-5)
    certain = classes(np.array([[[1 - 1e-30, 1e-30]], [[1e-30, 1 - 1e-30]]]))
    np.testing.assert_allclose(certain.epistemic, np.log(2), rtol=1e-5)
    np.testing.assert_allclose(certain.aleatoric, 0.0, atol=1e-6)


def test_log_probability_of_a_class_that_underflows():
    logits = jnp.array([[[0.0, -300.0]], [[0.0, -200.0]]])  # e^-200 is 0 in single precision
    got = Categorical(2).mixture(logits, jnp.zeros((1, 0)))
    np.testing.assert_allclose(got.log_prob([1]), [-200 - np.log(2)], rtol=1e-6)
    impossible = Categorical(2).mixture(jnp.array([[[0.0, -jnp.inf]]]), jnp.zeros((1, 0)))
    assert impossible.log_prob([1]) == -np.inf
    assert impossible.entropy == impossible.aleatoric == impossible.epistemic == 0


def test_frequencies_of_sampled_classes():
    """18 frequencies of 200,000 draws within 5 standard errors: a failure rate of 1e-5."""
    got, size = classes(), 200_000
    labels = got.sample(KEY, size)
    assert labels.shape == (size, 6)
    assert labels.dtype.kind == "i"
    often = np.stack([(labels == c).mean(axis=0) for c in range(3)], axis=-1)
    error = np.sqrt(got.probs * (1 - got.probs) / size)
    assert np.all(np.abs(often - got.probs) < 5 * error)


def test_impossible_classes_are_never_sampled():
    got = ClassPredictive(
        np.log(
            [[1.0, 0.5, 1.0], [0.0, 1.0, 0.0]],
            where=[[1, 1, 1], [0, 1, 0]],
            out=np.full((2, 3), -np.inf),
        ),
        np.zeros(2),
    )
    assert np.all(got.sample(KEY, 1000)[:, 1] == 1)


# --- groups of rows -------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(11)), st.integers(1, 4))
def test_rows_come_back_in_their_order_whatever_the_folds(order, count):
    fold = np.array(order) % count
    number = np.arange(11.0)
    labels = [
        ClassPredictive(np.stack([number, -number], axis=1)[fold == k], 10 * number[fold == k])
        for k in range(count)
    ]
    joined = in_order(labels, fold)
    np.testing.assert_array_equal(joined.log_probs, np.stack([number, -number], axis=1))
    np.testing.assert_array_equal(joined.aleatoric, 10 * number)
    members = np.stack([number, 100 + number])
    targets = [
        GaussianPredictive(members[:, fold == k], members[:, fold == k]) for k in range(count)
    ]
    np.testing.assert_array_equal(in_order(targets, fold).means, members)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: MANY.quantile(0.0), ["alpha", "between 0 and 1", "got 0"]),
        (lambda: MANY.quantile([0.5, 1.2]), ["alpha", "1.2"]),
        (lambda: MANY.quantile([[0.5]]), ["alpha", "(1, 1)"]),
        (lambda: MANY.quantile([]), ["alpha", "(0,)"]),
        (lambda: MANY.quantile(np.nan), ["alpha", "nan"]),
        (lambda: MANY.interval(1.0), ["coverage", "below 1"]),
        (lambda: MANY.interval(90), ["coverage", "[0, 1]", "90"]),
        (lambda: MANY.log_prob(np.zeros(4)), ["y must", "(5,)", "(4,)"]),
        (lambda: MANY.cdf(np.full(5, np.nan)), ["y must be finite", "nan"]),
        (lambda: MANY.sample(KEY, 0), ["size", "at least 1"]),
        (lambda: MANY.sample("a", 1), ["key must be a whole number or one JAX key", "'a'"]),
        (lambda: classes().sample(None, 1), ["key must be a whole number or one JAX key", "None"]),
        (lambda: classes().log_prob([0, 1, 2, 3, 0, 0]), ["y must", "0..2", "3"]),
        (lambda: classes().log_prob([0, 1, 2, 0.5, 0, 0]), ["y must", "0.5"]),
        (lambda: classes().log_prob([0, 1]), ["y must", "6 rows", "(2,)"]),
        (lambda: classes().sample(KEY, -1), ["size", "-1"]),
    ],
)
def test_bad_questions_are_named(ask, words):
    with pytest.raises(InvalidInput) as error:
        ask()
    assert all(word in str(error.value) for word in words), str(error.value)
