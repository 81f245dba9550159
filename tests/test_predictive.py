"""Predictive mixtures against the same numbers worked out another way."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mtbayes import predictives
from mtbayes import predictive as room
from mtbayes.members import Points
from mtbayes.errors import InvalidInput
from mtbayes.likelihoods import Bernoulli, Categorical, Gaussian
from mtbayes.models import CustomModel, Model
from mtbayes.networks import from_function, mlp
from mtbayes.posteriors import Mixture, Particles, mean_field
from mtbayes.predicting import ClassPredictive, GaussianPredictive, predictive

KEY = jax.random.key(7)
RNG = np.random.default_rng(3)
X = RNG.normal(size=(13, 4))


def gaussian(means, stds):
    """One row, from lists of members."""
    return GaussianPredictive(np.array(means, float)[:, None], np.array(stds, float)[:, None])


@cache
def start(posterior, model, wider=0.0):
    """A start, with enough spread for members to differ where asked."""

    @jax.jit
    def made(key):
        state = posterior.init(key, model)
        return state._replace(log_std=state.log_std + wider) if wider else state

    return made(KEY)


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
    monkeypatch.setattr(mixtures, "_AT_ONCE", 40)
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


# --- from a posterior -----------------------------------------------------------------------------

MODELS = {
    "categorical": Model(mlp((4, 5, 3)), Categorical(3)),
    "bernoulli": Model(mlp((4, 5, 1)), Bernoulli()),
    "fixed": Model(mlp((4, 5, 1)), Gaussian(0.3)),
    "learned": Model(mlp((4, 5, 1)), Gaussian("learned")),
    "by_input": Model(mlp((4, 5, 2)), Gaussian("by_input")),
    "adapter": Model(from_function(lambda p, x: x @ p, jnp.ones((4, 1))), Gaussian("learned")),
}
POSTERIORS = {"mean_field": mean_field(), "mixture": Mixture(2), "particles": Particles(12)}


@pytest.mark.parametrize(
    ("name", "family"),
    [(name, "mean_field") for name in MODELS] + [("learned", "mixture"), ("learned", "particles")],
)
def test_log_prob_is_that_of_the_likelihood(name, family):
    """The mixture's log_prob is log-mean-exp of log_lik[S, n], the narrow waist."""
    model, posterior = MODELS[name], POSTERIORS[family]
    state = start(posterior, model, wider=2.0 * posterior.drawn)
    got = predictive(model, posterior, state, X, key=KEY, members=12)
    y = RNG.integers(0, 2, 13) if name in ("categorical", "bernoulli") else RNG.normal(size=13)
    theta = posterior.sample(KEY, state, 12)
    log_lik = np.asarray(jax.jit(model.log_lik)(Points(theta), X, y), float)
    expected = np.log(np.exp(log_lik).mean(axis=0))
    np.testing.assert_allclose(got.log_prob(y), expected, rtol=2e-4, atol=2e-5)
    assert all(type(leaf) is np.ndarray for leaf in got)


@pytest.mark.parametrize(("name", "members"), [("categorical", 9), ("learned", 20)])
def test_chunks_change_nothing(name, draws, monkeypatch):
    model = MODELS[name]
    state = start(mean_field(), model, wider=2.0)
    whole = predictive(model, mean_field(), state, X, key=KEY, members=draws)
    monkeypatch.setattr(room, "_GROUP", 64)
    for chunk in (1, 5):
        room._program.cache_clear()
        part = predictive(model, mean_field(), state, X, key=KEY, members=draws, chunk=chunk)
        for one, two in zip(whole, part, strict=True):
            assert one.shape == two.shape
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
    room._program.cache_clear()


def test_one_program_serves_all_chunks_and_calls(monkeypatch):
    shapes = []

    class Counted(Gaussian):
        def mixture(self, outputs, own):
            shapes.append(outputs.shape)  # runs once for each compilation
            return super().mixture(outputs, own)

    model = Model(mlp((4, 5, 1)), Counted(0.3))
    state = start(mean_field(), model)
    x = RNG.normal(size=(50, 4))
    for n in (50, 37, 49):
        predictive(model, mean_field(), state, x[:n], key=KEY, members=4, chunk=8)
    assert shapes == [(4, 8, 1)]


def test_components_weigh_the_same_whatever_the_number_of_draws():
    model = Model(mlp((4, 1)), Gaussian(0.3))
    posterior = Mixture(2)
    state = start(posterior, model)
    far = state._replace(mean=state.mean * 0 + jnp.array([[0.0], [100.0]]))
    for draws in (1, 7):
        got = predictive(model, posterior, far, np.zeros((1, 4)), key=KEY, members=draws)
        assert len(got.means) == 2 * -(-draws // 2)
        np.testing.assert_allclose((got.means > 50).mean(), 0.5)


def test_points_are_the_members_once_each():
    model, posterior = MODELS["fixed"], Particles(3)
    state = start(posterior, model)
    for draws in (1, 100):
        got = predictive(model, posterior, state, X, key=KEY, members=draws)
        outputs, _ = jax.jit(model.outputs)(Points(state.mean), X)
        np.testing.assert_allclose(got.means, outputs[..., 0], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(got.stds, 0.3, rtol=1e-6)


def test_bernoulli_has_class_one_second():
    model = Model(from_function(lambda p, x: x * p, jnp.array([1.0])), Bernoulli())
    state = start(Particles(1), model)._replace(mean=jnp.array([[2.0]]))
    got = predictive(model, Particles(1), state, [[1.0], [-3.0]], key=KEY)
    np.testing.assert_allclose(got.probs[:, 1], 1 / (1 + np.exp([-2.0, 6.0])), rtol=1e-5)
    np.testing.assert_array_equal(got.labels, [1, 0])


def test_a_key_gives_one_answer_and_another_key_another():
    model, posterior = MODELS["fixed"], mean_field()
    state = start(posterior, model, wider=2.0)
    one, two, three = (
        predictive(model, posterior, state, X, key=k, members=5)
        for k in (KEY, KEY, jax.random.key(8))
    )
    np.testing.assert_array_equal(one.means, two.means)
    assert np.all(one.means != three.means)


def test_double_precision():
    with jax.enable_x64(True):
        model, posterior = MODELS["fixed"], mean_field()
        state = start.__wrapped__(posterior, model)
        got = predictive(model, posterior, state, X, key=KEY, members=3)
        assert got.means.dtype == np.float64
        theta = posterior.sample(KEY, state, 3)
        outputs, _ = jax.jit(model.outputs)(Points(theta), X)
        np.testing.assert_allclose(got.means, outputs[..., 0], rtol=1e-12)


def test_whole_numbers_are_rows_too():
    model = MODELS["fixed"]
    state = start(mean_field(), model)
    whole = np.arange(8, dtype=np.uint8).reshape(2, 4)
    one, two = (predictive(model, mean_field(), state, x, key=KEY) for x in (whole, whole * 1.0))
    np.testing.assert_array_equal(one.means, two.means)


def test_a_likelihood_of_one_s_own_touches_no_other_file():
    class Laplaces(NamedTuple):
        centres: np.ndarray  # [n, S]: rows first, unlike the Gaussians
        row_axis = 0

        def log_prob(self, y):
            each = -np.abs(np.asarray(y)[:, None] - self.centres) - np.log(2)
            return np.log(np.exp(each).mean(axis=1))

    class Laplace(Gaussian):
        def mixture(self, outputs, own):
            return Laplaces(outputs[..., 0].T)

    model = Model(mlp((4, 1)), Laplace(1.0))
    state = start(mean_field(), model, wider=2.0)
    got = predictive(model, mean_field(), state, X, key=KEY, members=10, chunk=4)
    assert got.centres.shape == (13, 10)
    outputs, _ = jax.jit(model.outputs)(Points(mean_field().sample(KEY, state, 10)), X)
    density = stats.laplace(np.asarray(outputs[..., 0])).pdf(np.zeros(13)).mean(axis=0)
    np.testing.assert_allclose(got.log_prob(np.zeros(13)), np.log(density), rtol=1e-4)


# --- errors ---------------------------------------------------------------------------------------


class StudentT:
    outputs, size = 1, 0


HOLE = np.where(np.arange(52).reshape(13, 4) == 22, np.nan, X)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": HOLE}, ["x must be finite", "nan", "[5, 2]", "drop"]),
        ({"x": X * np.inf}, ["x must be finite", "52 such"]),
        ({"x": X[:0]}, ["x must have at least one row", "(0, 4)", "x[None]"]),
        ({"x": 3.0}, ["x must have at least one row", "()"]),
        ({"x": X[:, :3]}, ["x must have shape (n, 4)", "(13, 3)", "Reshape"]),
        ({"x": X[0]}, ["x must have shape (n, 4)", "(4,)"]),
        ({"x": [["a"] * 4]}, ["x must be an array of numbers"]),
        ({"x": X[:, :3], "model": MODELS["adapter"]}, ["rows that the network takes", "(13, 3)"]),
        ({"members": 0}, ["members", "at least 1", "0"]),
        ({"members": 2.5}, ["members", "2.5"]),
        ({"chunk": 0}, ["chunk", "at least 1", "0"]),
        ({"model": Model(mlp((4, 1)), StudentT())}, ["mixture(outputs, own)", "StudentT"]),
        ({"model": CustomModel(lambda p, x, y: y * p, jnp.array(1.0))}, ["CustomModel", "Model("]),
        ({"model": Model(mlp((4, 9, 1)), Gaussian(0.3))}, ["state must hold 55", "got 31"]),
        ({"model": Model(mlp((4, 6)), Gaussian(0.3))}, ["network must have 1 outputs", "got 6"]),
        ({"scale": jnp.nan}, ["state must be finite", "learning rate"]),
    ],
)
def test_bad_input_is_named(change, words):
    change = {"model": MODELS["fixed"], "x": X, **change}
    state = start(mean_field(), MODELS["fixed"])
    state = state._replace(mean=state.mean * change.pop("scale", 1.0))
    model, x = change.pop("model"), change.pop("x")
    with pytest.raises(InvalidInput) as error:
        predictive(model, mean_field(), state, x, key=KEY, **change)
    assert all(word in str(error.value) for word in words), str(error.value)


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
