"""Networks, and the draws of weights that they run on."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from mtbayes.errors import InvalidInput
from mtbayes.likelihoods import Gaussian
from mtbayes.maths import draws
from mtbayes.members import Gaussians, Linear, Plan, Points, plan
from mtbayes.models import Model
from mtbayes.networks import (
    ACTIVATIONS,
    Conv,
    Dense,
    Flatten,
    MaxPool,
    Stack,
    cifar_cnn,
    emnist_mlp,
    from_equinox,
    from_flax,
    from_function,
    housing_mlp,
    mlp,
    mnist_mlp,
    multimodal_mlp,
)
from mtbayes.posteriors import mean_field, prior

SETS = 3
AS_IS = jnp.asarray
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


@pytest.fixture(params=["float32", "float64"])
def precision(request):
    with jax.enable_x64(request.param == "float64"):
        yield request.param


def normal(shape, precision="float32", seed=0, scale=1.0):
    return jnp.asarray(np.random.default_rng(seed).normal(0, scale, shape), precision)


def run(network, theta, x):
    """The network's outputs as they run elsewhere: compiled."""
    return jax.jit(lambda theta, x: network.outputs(Points(theta), x))(theta, x)


PLAIN = {
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "linear": lambda x: x,
}


# --- forward passes against plain ones ---------------------------------------------------------


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_dense_stack_is_a_plain_forward_for_each_set(activation, precision):
    sizes = (4, 6, 5, 2)
    network = mlp(sizes, activation)
    theta, x = normal((SETS, network.size), precision), normal((7, 4), precision, 1)
    got = run(network, theta, x)
    assert got.shape == (SETS, 7, 2)
    assert got.dtype == precision
    for s in range(SETS):
        h, rest = np.asarray(x, float), np.asarray(theta[s], float)
        for i, (fan_in, units) in enumerate(pairwise(sizes)):
            weight = rest[: fan_in * units].reshape(fan_in, units)
            bias, rest = np.split(rest[fan_in * units :], [units])
            h = h @ weight + bias
            h = PLAIN[activation](h) if i < 2 else h
        assert rest.size == 0
        np.testing.assert_allclose(got[s], h, rtol=TOLERANCE[precision], atol=TOLERANCE[precision])


def plain_conv(h, weight, bias, kernel):
    weight = weight.reshape(kernel, kernel, h.shape[-1], -1)
    dims = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(h, weight, (1, 1), "VALID", dimension_numbers=dims) + bias


def plain_pool(h, size):
    window = (1, size, size, 1)
    return jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, window, window, "VALID")


# Sides that differ, and that neither pooling divides: 11×9 and 4×3. The first pooling is fused with
# its convolution, the second is not.
CNN = Stack(
    (13, 11, 2),
    (Conv(3, 3), MaxPool(2), Conv(4, 2), MaxPool(2), Flatten(), Dense(5), Dense(2, "linear")),
)


def plain_cnn(theta, x):
    first, second, third, last = CNN.unravel(theta)
    h = plain_pool(jax.nn.elu(plain_conv(x, *first, 3)), 2)
    assert h.shape[1:] == (5, 4, 3)
    h = plain_pool(jax.nn.elu(plain_conv(h, *second, 2)), 2)
    assert h.shape[1:] == (2, 1, 4)
    h = jax.nn.elu(h.reshape(len(x), -1) @ third.weight + third.bias)
    return h @ last.weight + last.bias


def test_convolutions_are_the_library_s_for_each_set(precision):
    theta, x = normal((SETS, CNN.size), precision), normal((4, 13, 11, 2), precision, 1)
    got = run(CNN, theta, x)
    plain = jax.jit(plain_cnn)
    tolerance = 10 * TOLERANCE[precision]  # four layers deep, sums of up to 18 terms
    for s in range(SETS):
        np.testing.assert_allclose(got[s], plain(theta[s], x), rtol=tolerance, atol=tolerance)


def test_gradients_and_hessian_products_of_convolutions():
    with jax.enable_x64(True):
        theta, x = normal((1, CNN.size), "float64"), normal((2, 13, 11, 2), "float64", 1)
        direction = normal(theta.shape, "float64", 2)

        def ours(theta):
            return jnp.sum(jnp.cos(CNN.outputs(Points(theta), x)))

        def theirs(theta):
            return jnp.sum(jnp.cos(plain_cnn(theta[0], x)))

        for loss in (ours, theirs):
            loss.both = jax.jit(lambda t, loss=loss: jax.jvp(jax.grad(loss), (t,), (direction,)))
        for one, two in zip(ours.both(theta), theirs.both(theta), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


def test_pooling_and_flattening_before_the_first_weights():
    network = Stack((4, 4, 1), (MaxPool(2), Flatten(), Dense(2, "linear")))
    theta, x = normal((SETS, network.size)), normal((5, 4, 4, 1), seed=1)
    (layer,) = network.unravel(theta)
    pooled = plain_pool(x, 2).reshape(5, 4)
    expected = jnp.einsum("ni,siu->snu", pooled, layer.weight) + layer.bias[:, None]
    np.testing.assert_allclose(network.outputs(Points(theta), x), expected, rtol=1e-5, atol=1e-6)


def test_dense_acts_on_the_last_axis_alone():
    network = Stack((3, 4), (Dense(2, "tanh"),))
    theta, x = normal((SETS, network.size)), normal((5, 3, 4), seed=1)
    (layer,) = network.unravel(theta)
    expected = jnp.einsum("nai,siu->snau", x, layer.weight) + layer.bias[:, None, None]
    np.testing.assert_allclose(network.outputs(Points(theta), x), jnp.tanh(expected), rtol=1e-5)
    assert network.linears[0].positions == 3


# --- activations --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activation_and_gradient(name, precision):
    x = jnp.asarray([-200.0, -3.0, -0.5, -1e-3, 1e-3, 0.5, 3.0, 200.0], precision)
    library = {"elu": jax.nn.elu, "relu": jax.nn.relu, "tanh": jnp.tanh, "linear": lambda v: v}
    for ours, theirs in (
        (ACTIVATIONS[name], library[name]),
        (jax.vmap(jax.grad(ACTIVATIONS[name])), jax.vmap(jax.grad(library[name]))),
    ):
        got, expected = jax.jit(lambda x, f=ours, g=theirs: (f(x), g(x)))(x)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=TOLERANCE[precision] / 10)
        assert got.dtype == precision


def test_elu_at_zero_has_slope_one_and_keeps_nan():
    assert jax.grad(ACTIVATIONS["elu"])(0.0) == 1
    assert jnp.isnan(ACTIVATIONS["elu"](jnp.nan))


def test_elu_has_hessians_in_every_mode():
    # Influence functions need products with a Hessian: forward over reverse.
    x, v = np.array([-1.0, -0.2, 0.7]), np.array([1.0, 2.0, 3.0])

    def total(x):
        return jnp.sum(ACTIVATIONS["elu"](x))

    expected = np.where(x < 0, np.exp(x), 0.0) * v
    forward = jax.jit(lambda x, v: jax.jvp(jax.grad(total), (x,), (v,))[1])
    np.testing.assert_allclose(forward(x, v), expected, rtol=1e-5)
    reverse = jax.jit(jax.grad(lambda x, v: jnp.vdot(jax.grad(total)(x), v)))
    np.testing.assert_allclose(reverse(x, v), expected, rtol=1e-5)


# --- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "shape", "size", "outputs"),
    [
        (mnist_mlp(), (784,), 19885, 10),
        (emnist_mlp(), (784,), 785 * 25 + 26 * 25 + 26 * 47, 47),
        (housing_mlp(), (8,), 211, 1),
        (multimodal_mlp(), (1,), 2701, 1),
        (cifar_cnn(), (32, 32, 3), 28 * 8 + 33 * 4 + 197 * 25 + 26 * 10, 10),
    ],
)
def test_the_paper_s_networks(network, shape, size, outputs):
    assert network.size == size
    given = jax.eval_shape(
        lambda t, x: network.outputs(Points(t), x), jnp.zeros((2, size)), jnp.zeros((3, *shape))
    )
    assert given.shape == (2, 3, outputs)
    assert all(getattr(layer, "activation", "elu") == "elu" for layer in network.layers[:-1])
    assert network.layers[-1].activation == "linear"


def test_cifar_shapes():
    places = [(s.inputs, s.units, s.positions, s.shared) for s in cifar_cnn().linears]
    first, second = (27, 8, 30 * 30, True), (32, 4, 14 * 14, False)
    assert places == [first, second, (4 * 7 * 7, 25, 1, False), (25, 10, 1, False)]


def test_initial_weights_have_the_scale_and_biases_are_zero(precision):
    network = mlp((400, 50, 3))
    theta = network.initial(draws.normals(draws.key(0), (network.size,)))
    assert theta.shape == (network.size,)
    assert theta.dtype == precision
    first, second = network.unravel(theta)
    # 20,000 normals: the standard deviation is known to 0.5 %, 5 of those is a rate of 6e-7.
    assert abs(float(jnp.std(first.weight)) * 20 - 1) < 0.025
    assert not np.any(first.bias)
    assert not np.any(second.bias)
    scales = network.unravel(network.scale())
    np.testing.assert_allclose(scales[0].weight, 0.05, rtol=1e-6)
    np.testing.assert_allclose(scales[1].bias, 50**-0.5, rtol=1e-6)


def test_trees_flatten_back_into_theta_in_its_order():
    model = Model(mlp((3, 4, 1)), Gaussian("learned"))
    theta = jnp.arange(model.size, dtype=float)
    np.testing.assert_array_equal(ravel_pytree(model.unravel(theta))[0], theta)
    # What makes the order matter: a prior given leaf by leaf must meet its own weights.
    tree = model.unravel(theta)
    np.testing.assert_array_equal(prior(tree, 1.0, like=tree).mean, theta)
    several = model.unravel(jnp.stack([theta, theta + 1]))
    np.testing.assert_array_equal(several.network[0].weight[1], tree.network[0].weight + 1)


# --- adapters -----------------------------------------------------------------------------------


def test_equinox_module():
    import equinox as eqx

    modules = [
        eqx.nn.MLP(3, 2, 5, 2, activation=jax.nn.tanh, key=jax.random.key(s)) for s in range(SETS)
    ]
    network = from_equinox(modules[0])
    theta = jnp.stack([ravel_pytree(eqx.filter(m, eqx.is_inexact_array))[0] for m in modules])
    x = normal((6, 3))
    got = run(network, theta, x)
    assert got.shape == (SETS, 6, 2)
    for each, module in zip(got, modules, strict=True):
        expected = jnp.stack([module(row) for row in x])
        np.testing.assert_allclose(each, expected, rtol=1e-5, atol=1e-6)


def test_flax_module():
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(3, 5, rngs=rngs)
            self.norm = nnx.BatchNorm(5, use_running_average=True, rngs=rngs)
            self.second = nnx.Linear(5, 2, rngs=rngs)

        def __call__(self, x):
            return self.second(jnp.tanh(self.norm(self.first(x))))

    modules = [Net(nnx.Rngs(s)) for s in range(SETS)]
    network = from_flax(modules[0])
    theta = jnp.stack([ravel_pytree(nnx.state(m, nnx.Param))[0] for m in modules])
    assert network.size == theta.shape[1] == 3 * 5 + 5 + 2 * 5 + 5 * 2 + 2
    x = normal((6, 3))
    got = run(network, theta, x)
    for each, module in zip(got, modules, strict=True):
        np.testing.assert_allclose(each, module(x), rtol=1e-5, atol=1e-6)


def test_plain_function_and_its_tree():
    def apply(params, x):
        return x @ params["map"] + params["shift"]

    params = {"shift": jnp.arange(2.0), "map": normal((3, 2))}
    network, x = from_function(apply, params), normal((6, 3), seed=1)
    theta = normal((SETS, network.size), seed=2)
    got = run(network, theta, x)
    for s in range(SETS):
        np.testing.assert_allclose(got[s], apply(network.unravel(theta[s]), x), rtol=1e-5)
    back = ravel_pytree(network.unravel(theta[1]))[0]
    np.testing.assert_array_equal(back, theta[1])
    np.testing.assert_array_equal(
        network.unravel(theta)["map"][1], network.unravel(theta[1])["map"]
    )


def test_function_that_gives_a_number_a_row_has_one_output():
    network = from_function(lambda p, x: x[:, 0] * p, jnp.array(2.0))
    got = network.outputs(Points(jnp.array([[1.0], [3.0]])), jnp.ones((4, 1)))
    np.testing.assert_array_equal(got, [[[1.0]] * 4, [[3.0]] * 4])


def test_adapter_starts_near_the_given_weights_and_differs_by_key():
    network = from_function(lambda p, x: x * p["a"] + p["b"], {"a": jnp.full(100, 2.0), "b": 0.0})
    np.testing.assert_allclose(network.scale(), [2.0] * 100 + [0.1], rtol=1e-6)
    one, two = (network.initial(draws.normals(draws.key(s), (network.size,))) for s in (0, 1))
    centre = jnp.array([2.0] * 100 + [0.0])
    # Noise of a tenth of the scale; 6 standard deviations, 202 numbers: a rate of 4e-7.
    assert jnp.all(jnp.abs(one - centre) < 0.6 * network.scale())
    assert not jnp.any(one == two)


@pytest.mark.parametrize(
    ("apply", "words"),
    [
        (lambda p, x: jnp.sum(x * p), ["apply", "(4, k)", "()", "jax.vmap"]),
        (lambda p, x: (x * p)[:2], ["apply", "(4, k)", "(2, 3)"]),
        (lambda p, x: (x * p)[..., None], ["apply", "(4, k)", "(4, 3, 1)"]),
    ],
)
def test_adapter_of_wrong_shape_is_named(apply, words):
    with pytest.raises(InvalidInput) as error:
        from_function(apply, jnp.array(1.0)).outputs(Points(jnp.ones((2, 1))), jnp.ones((4, 3)))
    assert all(word in str(error.value) for word in words)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: mlp((784,)), ["sizes", "(784,)"]),
        (lambda: mlp((4, 0, 1)), ["units", "0"]),
        (lambda: Dense(3, "rellu"), ["activation", "'relu', 'elu'", "'rellu'"]),
        (lambda: Conv(0, 3), ["filters", "0"]),
        (lambda: Conv(3, 2.5), ["kernel", "2.5"]),
        (lambda: Stack((784,), (Conv(3, 3),)).size, ["input_shape", "(784,)", "channel axis"]),
        (lambda: Stack((2, 9, 1), (Conv(3, 3),)).size, ["input_shape", "at least 3"]),
        (lambda: Stack((1, 9, 1), (MaxPool(2), Flatten())).size, ["input_shape", "at least 2"]),
    ],
)
def test_bad_layers_are_named(build, words):
    with pytest.raises(InvalidInput) as error:
        build()
    assert all(word in str(error.value) for word in words)


# --- draws from Gaussians -----------------------------------------------------------------------


# Narrow after wide, so that both ways are planned: rows for the first map, weights for the last.
MIXED = Stack((40,), (Dense(6, "tanh"), Dense(3, "linear")))
IMAGE = Stack((6, 6, 1), (Conv(2, 3), MaxPool(2), Flatten(), Dense(3, "linear")))
WHOLE = Stack((5, 5, 2), (Conv(3, 5), Flatten(), Dense(2, "linear")))
TWO_AXES = Stack((1, 40), (Dense(5), Flatten(), Dense(2, "linear")))


@pytest.mark.parametrize("network", [MIXED, IMAGE, WHOLE, TWO_AXES])
def test_without_spread_draws_are_the_means(network, precision):
    sets, components = 4, 2
    chosen = plan(network.linears, network.size, components, sets, rows=5)
    mean = normal((components, network.size), precision)
    noise = normal(chosen.size, precision, 1)
    x = normal((5, *network.input_shape), precision, 2)

    @jax.jit
    def both(mean, noise):
        draws = Gaussians(mean, 0 * mean, noise, chosen, sets)
        points = Points(jnp.repeat(mean, sets // components, axis=0))
        return network.outputs(draws, x), network.outputs(points, x)

    got, expected = both(mean, noise)
    assert got.dtype == precision
    tolerance = 10 * TOLERANCE[precision]
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_components_come_in_blocks_in_order():
    linear = Linear(0, 30, 2, positions=1, shared=True)
    after = linear._replace(shared=False)
    mean = np.stack([np.full(linear.size, v) for v in (1.0, 2.0)])
    for chosen in (Plan(((0, 0),), (), 6 * 3 * 2), Plan((), ((0, 0),), 6 * linear.size)):

        @jax.jit
        def both(mean, h, chosen=chosen):
            draws = Gaussians(mean, 0 * mean, jnp.zeros(chosen.size), chosen, 6)
            return draws.linear(linear, h, AS_IS), draws.linear(after, jnp.stack([h] * 6), AS_IS)

        for got in map(np.asarray, both(mean, np.ones((3, 30)))):
            np.testing.assert_allclose(got[:3], 31.0)
            np.testing.assert_allclose(got[3:], 62.0)


@pytest.mark.parametrize("way", ["rows", "weights"])
@pytest.mark.parametrize("shared", [True, False])
def test_both_ways_have_the_moments_of_the_pre_activations(way, shared):
    """Means and variances are exact sums; 48 comparisons at 5 standard errors: a rate of 3e-5."""
    sets, rows, units, components = 20_000, 3, 2, 2
    linear = Linear(0, 4, units, 1, shared)
    by_row = Plan(((0, 0),), (), sets * rows * units)
    by_weight = Plan((), ((0, 0),), sets * linear.size)
    chosen = by_row if way == "rows" else by_weight
    mean = normal((components, linear.size), seed=1)
    std = jnp.exp(0.5 * normal(mean.shape, seed=2))
    noise, h = normal(chosen.size, seed=3), normal((rows, 4), seed=4)
    inputs = h if shared else jnp.broadcast_to(h, (sets, *h.shape))
    drawn = jax.jit(lambda *all_: Gaussians(*all_[:3], chosen, sets).linear(linear, all_[3], AS_IS))
    got = np.asarray(drawn(mean, std, noise, inputs), float)
    each = sets // components
    for k in range(components):
        weight, bias = np.split(np.asarray(mean[k], float), [4 * units])
        weight_var, bias_var = np.split(np.square(np.asarray(std[k], float)), [4 * units])
        centre = np.asarray(h, float) @ weight.reshape(4, units) + bias
        spread = np.square(np.asarray(h, float)) @ weight_var.reshape(4, units) + bias_var
        block = got[k * each : (k + 1) * each]
        assert np.all(np.abs(block.mean(axis=0) - centre) < 5 * np.sqrt(spread / each))
        assert np.all(np.abs(block.var(axis=0) / spread - 1) < 5 * np.sqrt(2 / each))


def test_rows_have_their_own_weights_one_way_and_share_them_the_other():
    linear = Linear(0, 4, 2, 1, True)
    h = jnp.ones((2, 4))
    mean, noise = jnp.zeros((1, linear.size)), normal(5 * linear.size)
    by_weight = Gaussians(mean, mean + 1, noise, Plan((), ((0, 0),), noise.size), 5)
    by_row = by_weight._replace(plan=Plan(((0, 0),), (), 5 * 2 * 2))
    both = jax.jit(lambda h: [d.linear(linear, h, AS_IS) for d in (by_weight, by_row)])
    shared, own = map(np.asarray, both(h))
    np.testing.assert_array_equal(shared[:, 0], shared[:, 1])
    assert np.all(own[:, 0] != own[:, 1])


# --- plans --------------------------------------------------------------------------------------


def test_plan_picks_rows_for_784_25_and_weights_for_25_10():
    first, second = mnist_mlp().linears
    chosen = plan(mnist_mlp().linears, mnist_mlp().size, components=1, members=10, rows=128)
    assert chosen.by_row == ((first.start, 0),)
    assert chosen.by_weight == ((second.start, 10 * 128 * 25),)
    assert chosen.size == 10 * 128 * 25 + 10 * 260


def test_plan_never_draws_convolutions_row_by_row():
    network = cifar_cnn()
    for sets in (1, 10, 100):
        for rows in (1, 128, 10_000):
            chosen = plan(network.linears, network.size, 1, sets, rows)
            by_row = {start for start, _ in chosen.by_row}
            assert by_row.isdisjoint(s.start for s in network.linears if s.positions > 1)


@pytest.mark.parametrize("own", [0, 3])
@pytest.mark.parametrize("network", [MIXED, IMAGE, WHOLE, TWO_AXES, mlp((2, 2))])
@pytest.mark.parametrize("components", [1, 2])
def test_every_random_number_is_used_once(network, components, own):
    """With mean 0, weights' std 0 and biases' std 1 a pre-activation is its own random number."""
    sets, rows, total = 4, 5, network.size + own
    chosen = plan(network.linears, total, components, sets, rows)
    rowwise = {start for start, _ in chosen.by_row}

    @jax.jit
    def seen(noise):
        zeros, parts = np.zeros((components, total), np.float32), []
        for s in network.linears:
            if s.start in rowwise:
                std = zeros.copy()
                std[:, s.start + s.inputs * s.units : s.start + s.size] = 1.0
                lead = (rows,) if s.shared else (sets, rows)
                draws = Gaussians(zeros, std, noise, chosen, sets)
                parts.append(draws.linear(s, jnp.ones((*lead, s.inputs)), AS_IS))
            else:
                parts.append(Gaussians(zeros, zeros + 1, noise, chosen, sets).part(s.start, s.size))
        if own:
            parts.append(Gaussians(zeros, zeros + 1, noise, chosen, sets).part(network.size, own))
        return jnp.concatenate([part.ravel() for part in parts])

    used = np.sort(seen(jnp.arange(chosen.size, dtype=jnp.float32)))
    np.testing.assert_array_equal(used, np.arange(chosen.size))


def test_an_adapter_and_its_likelihood_share_no_random_number():
    model = Model(from_function(lambda p, x: x @ p, jnp.ones((3, 1))), Gaussian("learned"))
    chosen = plan(model.linears, model.size, 1, members=6, rows=5)
    assert chosen.size == 6 * 4
    state = mean_field().init(jax.random.key(0), model)
    state = jax.tree.map(lambda v: np.zeros(v.shape, v.dtype), state)

    @jax.jit
    def said(noise, x):
        return model.outputs(mean_field().members(state, noise, chosen, 6), x)

    outputs, own = said(np.arange(24, dtype=np.float32), np.eye(3, dtype=np.float32))
    used = np.concatenate([np.ravel(outputs), np.ravel(own)])
    np.testing.assert_allclose(np.sort(used), np.arange(24.0), rtol=1e-6)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_numpy_and_jax_give_the_same_outputs(activation):
    """What predicts is computed by NumPy, what trains by JAX."""
    layers = Conv(3, 3, activation), MaxPool(2), Conv(2, 2, activation), MaxPool(2), Flatten()
    network = Stack((9, 10, 2), (*layers, Dense(5, activation), Dense(3, "linear")))
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(4, network.size)).astype(np.float32)
    x = rng.normal(size=(6, 9, 10, 2)).astype(np.float32)
    in_numpy = network.outputs(Points(theta), x)
    assert isinstance(in_numpy, np.ndarray)
    assert in_numpy.shape == (4, 6, *network.output_shape)
    in_jax = jax.jit(lambda theta, x: network.outputs(Points(theta), x))(theta, x)
    np.testing.assert_allclose(in_numpy, in_jax, rtol=2e-4, atol=2e-5)
