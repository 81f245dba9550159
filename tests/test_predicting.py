"""From a posterior to predictions: the mixture is that of the members, whatever the chunks."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mtbayes import predicting
from mtbayes.errors import InvalidInput
from mtbayes.likelihoods import Bernoulli, Categorical, Gaussian
from mtbayes.members import Points
from mtbayes.models import CustomModel, Model
from mtbayes.networks import from_function, mlp
from mtbayes.posteriors import Mixture, Particles, mean_field
from mtbayes.predicting import predictive

KEY = jax.random.key(7)
RNG = np.random.default_rng(3)
X = RNG.normal(size=(13, 4))


@cache
def start(posterior, model, wider=0.0):
    """A start, with enough spread for members to differ where asked."""
    state = posterior.init(KEY, model)
    return state._replace(log_std=state.log_std + wider) if wider else state


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
    assert all(type(leaf) is np.ndarray for leaf in jax.tree.leaves(got))


@pytest.mark.parametrize(("name", "members"), [("categorical", 9), ("learned", 20)])
def test_chunks_change_nothing(name, members, monkeypatch):
    model = MODELS[name]
    state = start(mean_field(), model, wider=2.0)
    whole = predictive(model, mean_field(), state, X, key=KEY, members=members)
    monkeypatch.setattr(predicting, "_GROUP", 64)
    for chunk in (1, 5):
        predicting._program.cache_clear()
        part = predictive(model, mean_field(), state, X, key=KEY, members=members, chunk=chunk)
        for one, two in zip(*map(jax.tree.leaves, (whole, part)), strict=True):
            assert one.shape == two.shape
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
    predicting._program.cache_clear()


def test_one_program_serves_all_chunks_and_calls(monkeypatch):
    shapes = []

    class Counted(Gaussian):
        def mixture(self, outputs, own):
            shapes.append(outputs.shape)  # runs once for each compilation
            return super().mixture(outputs, own)

    model = Model(from_function(lambda p, x: x @ p, jnp.ones((4, 1))), Counted(0.3))
    state = start(mean_field(), model)
    x = RNG.normal(size=(50, 4))
    for n in (50, 37, 49):
        predictive(model, mean_field(), state, x[:n], key=KEY, members=4, chunk=8)
    assert shapes == [(4, 8, 1)]


def test_components_weigh_the_same_whatever_the_number_of_members():
    model = Model(mlp((4, 1)), Gaussian(0.3))
    posterior = Mixture(2)
    state = start(posterior, model)
    far = state._replace(mean=state.mean * 0 + jnp.array([[0.0], [100.0]]))
    for members in (1, 7):
        got = predictive(model, posterior, far, np.zeros((1, 4)), key=KEY, members=members)
        assert len(got.means) == 2 * -(-members // 2)
        np.testing.assert_allclose((got.means > 50).mean(), 0.5)


def test_points_are_the_members_once_each():
    model, posterior = MODELS["fixed"], Particles(3)
    state = start(posterior, model)
    for members in (1, 100):
        got = predictive(model, posterior, state, X, key=KEY, members=members)
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


def test_a_whole_number_is_as_good_as_its_key():
    model = MODELS["fixed"]
    state = start(mean_field(), model, wider=2.0)
    one, other = (
        predictive(model, mean_field(), state, X, key=key) for key in (7, jax.random.key(7))
    )
    np.testing.assert_array_equal(one.means, other.means)
    np.testing.assert_array_equal(one.sample(3, 4), one.sample(jax.random.key(3), 4))


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
        ({"key": "a"}, ["key must be a whole number or one JAX key, got 'a'"]),
        ({"scale": jnp.nan}, ["state must be finite", "learning rate"]),
    ],
)
def test_bad_input_is_named(change, words):
    change = {"model": MODELS["fixed"], "x": X, **change}
    state = start(mean_field(), MODELS["fixed"])
    state = state._replace(mean=state.mean * change.pop("scale", 1.0))
    model, x = change.pop("model"), change.pop("x")
    with pytest.raises(InvalidInput) as error:
        predictive(model, mean_field(), state, x, **{"key": KEY, **change})
    assert all(word in str(error.value) for word in words), str(error.value)
