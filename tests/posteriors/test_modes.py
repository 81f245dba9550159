"""Posteriors of several modes: a loss of their own or one of all, and weights that they share."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.stats import norm

from mtbayes import Criterion, InvalidInput, fit, objective, path, predictive, prior, sweep
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.maths import draws, log_t
from mtbayes.members import Apart, Factors, Points
from mtbayes.models import CustomModel, Model
from mtbayes.networks import Conv, Dense, Flatten, MaxPool, Stack, mlp
from mtbayes.posteriors import Mixture, Particles, Rank1, grouped, members_of
from mtbayes.posteriors.mixture import MixtureState
from mtbayes.posteriors.particles import ParticlesState
from mtbayes.solve.program import Settings, row_losses

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3)).astype(np.float32)
Y = (X @ np.array([1.0, -2.0, 0.5]) > 0.3).astype(np.int32)
NET = Model(mlp((3, 7, 2)), Categorical(2))


# J of a mixture, and the mean of its modes'.

GRID = np.linspace(-6, 6, 121)
DATA = np.array([-2.1, -1.7, 0.4, 2.2, 2.6])
LOG_LIK = norm.logpdf(DATA, GRID[:, None], 1.0)
PRIOR = norm.pdf(GRID, 0, 3) / norm.pdf(GRID, 0, 3).sum()


def mode(centre, width):
    q = norm.pdf(GRID, centre, width)
    return q / q.sum()


@pytest.mark.parametrize(("m", "t"), [(1, 1.0), (1, 0.5), (2, 0.7), (5, 1.0), (10, 0.3)])
@pytest.mark.parametrize("t_p", [1.0, 0.5])
def test_modes_of_their_own_bound_the_mixture_from_above(m, t, t_p):
    """J(mean_k q_k) <= mean_k J(q_k), with equality where all modes are one."""
    criterion = Criterion(m=m, t=t, beta=2.0, t_p=t_p)

    def j(q):
        return float(objective(q, LOG_LIK, PRIOR, criterion))

    gaps = []
    for apart in (0.0, 0.5, 2.0):
        modes = [mode(c * apart, 0.8) for c in (-1, 0.3, 1)]
        gaps.append(np.mean([j(q) for q in modes]) - j(np.mean(modes, axis=0)))
    assert gaps[0] == pytest.approx(0, abs=1e-9)
    assert 1e-6 < gaps[1] < gaps[2]


def test_at_one_member_the_data_term_of_both_is_the_same():
    """R_t^1 is linear in q: the bound is tight but for the divergence."""
    criterion = Criterion(m=1, t=0.6, beta=np.inf)
    modes = [mode(c, 0.8) for c in (-2, 1)]
    own = np.mean([float(objective(q, LOG_LIK, PRIOR, criterion)) for q in modes])
    assert own == pytest.approx(float(objective(np.mean(modes, axis=0), LOG_LIK, PRIOR, criterion)))


def log_lik(model, *arguments):
    """Compiled as one, not operation by operation."""
    return jax.jit(model.log_lik)(*arguments)


def losses(posterior, state, criterion):
    settings = Settings(NET, posterior, criterion.template(), None, len(X))
    numbers = tuple(jnp.asarray(v) for v in criterion.numbers())
    return row_losses(settings, state, X, Y, KEY, numbers, members=12)


def test_own_and_joint_losses_by_hand():
    """Points that hardly spread: own is the mean of -log_t p_k, joint -log_t of the mean p_k."""
    theta = NET.initial(draws.normals(KEY, (2, NET.size)))
    state = MixtureState(theta, jnp.full(theta.shape, -20.0))
    p = np.exp(np.asarray(log_lik(NET, Points(theta), X, Y), float))
    own = losses(Mixture(2), state, Criterion(m=3, t=0.5, joint=False))
    np.testing.assert_allclose(own, -log_t(p, 0.5).mean(axis=0), rtol=1e-4)
    joint = losses(Mixture(2), state, Criterion(m=2, t=0.5))
    np.testing.assert_allclose(joint, -log_t(p.mean(axis=0), 0.5), rtol=1e-4)
    assert np.all(own > joint - 1e-6)


def test_members_of_a_group_are_of_one_mode_or_of_all():
    state = ParticlesState(jnp.arange(3.0)[:, None])
    own, joint = (Criterion(m=2, t=1.0, joint=j) for j in (False, True))
    assert members_of(own, Particles(3)) == 6
    assert members_of(joint, Particles(2)) == 2
    found = grouped(own, Particles(3), KEY, state, 6)[:, 0]
    assert found.tolist() == [0, 0, 1, 1, 2, 2]
    assert grouped(joint, Particles(3), KEY, state, 6)[:, 0].tolist() == [0, 1, 2, 0, 1, 2]


# Training.


@pytest.mark.parametrize("m", [1, 2])
def test_a_mode_of_its_own_ends_where_it_would_alone(m):
    """Adam does not mind a gradient's scale, which is 1/K."""
    criterion = Criterion(m=m, t=0.7, beta=5.0, joint=False)
    options = {"key": KEY, "epochs": 5, "batch_size": 20, "prior": prior(0.0, 1.0)}
    start = Particles(3).init(KEY, NET)
    together = fit(NET, X, Y, criterion, posterior=Particles(3), start=start, **options).state.mean
    for k in range(3):
        one = ParticlesState(start.mean[k : k + 1])
        alone = fit(NET, X, Y, criterion, posterior=Particles(1), start=one, **options).state.mean
        np.testing.assert_allclose(together[k], alone[0], atol=2e-3)


def test_modes_of_one_loss_end_elsewhere():
    options = {"key": KEY, "posterior": Particles(2), "epochs": 5, "batch_size": 20}
    own, joint = (
        fit(NET, X, Y, Criterion(2, 0.7, joint=j), **options).state for j in (False, True)
    )
    assert np.abs(own.mean - joint.mean).max() > 0.01


def test_sweep_and_path_train_modes_of_their_own():
    criteria = [Criterion(m=2, t=t, beta=5.0, joint=False) for t in (1.0, 0.6)]
    options = {"posterior": Mixture(3), "epochs": 2, "batch_size": 20}
    table = sweep(NET, X, Y, criteria, keys=jax.random.split(KEY, 1), **options)
    alone = fit(NET, X, Y, criteria[1], key=jax.random.split(KEY, 1)[0], **options)
    np.testing.assert_allclose(table[1][0].state.mean, alone.state.mean, atol=1e-4)
    walked = path(NET, X, Y, criteria, key=KEY, **options)
    assert [s.state.mean.shape for s in walked] == [(3, NET.size)] * 2


def test_m_need_not_divide_modes_of_their_own():
    with pytest.raises(InvalidInput, match=r"m must divide the posterior's 3.*joint=False"):
        fit(NET, X, Y, Criterion(m=2, t=0.5), key=KEY, posterior=Particles(3))
    fit(NET, X, Y, Criterion(2, 0.5, joint=False), key=KEY, posterior=Mixture(3), epochs=1)
    for family in (Mixture, Particles, Rank1):
        with pytest.raises(InvalidInput, match=r"components must be a whole number .* got 0"):
            family(0)


def test_a_checkpoint_of_another_number_of_modes_is_refused(tmp_path):
    options = {"key": KEY, "epochs": 1, "checkpoint": tmp_path / "c"}
    fit(NET, X, Y, Criterion(1, 0.7), posterior=Particles(2), **options)
    told = r"must belong to this fit.*\(components=2\).*now .*\(components=3\).*delete it"
    with pytest.raises(InvalidInput, match=told):
        fit(NET, X, Y, Criterion(1, 0.7), posterior=Particles(3), **options)


# Points map by map.

STACK = Stack((6, 6, 1), (Conv(3, 3), MaxPool(2), Conv(2, 2), Flatten(), Dense(4), Dense(2)))
IMAGES = RNG.standard_normal((5, 6, 6, 1)).astype(np.float32)


TWO_AXES = Stack((3, 2), (Dense(5), Flatten(), Dense(4), Dense(2)))
PAIRS = RNG.standard_normal((5, 3, 2)).astype(np.float32)
NETWORKS = [(mlp((3, 7, 2)), X), (STACK, IMAGES), (TWO_AXES, PAIRS)]


@pytest.mark.parametrize(("network", "x"), NETWORKS)
def test_points_apart_are_the_points(network, x):
    model = Model(network, Categorical(2))
    theta = jnp.asarray(RNG.standard_normal((4, model.size)), jnp.float32)
    apart = Apart.of(theta, model.linears)
    np.testing.assert_array_equal(apart.theta(), theta)
    y = np.arange(len(x), dtype=np.int32) % 2
    expected = log_lik(model, Points(theta), x, y)
    np.testing.assert_allclose(log_lik(model, apart, x, y), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "prior_", [prior(0.0, 1.0), prior(np.linspace(-1, 1, NET.size), np.linspace(1, 3, NET.size))]
)
def test_steps_map_by_map_are_those_of_whole_points(prior_):
    """An optimiser of one's own moves whole points: Adam with the same rates ends at the same."""
    options = {"key": KEY, "posterior": Particles(3), "prior": prior_, "epochs": 20}
    criterion = Criterion(1, 0.7, joint=False)
    own = optax.adam(optax.cosine_decay_schedule(0.01, 20))
    whole = fit(NET, X, Y, criterion, optimiser=own, **options)
    found = fit(NET, X, Y, criterion, learning_rate=0.01, **options)
    assert found.trace.shape == whole.trace.shape
    np.testing.assert_allclose(found.state.mean, whole.state.mean, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.trace, whole.trace, rtol=1e-3)


# Shared weights.


def changed(state, seed=1):
    """A state whose factors differ from 1 and from each other."""
    leaves, tree = jax.tree.flatten(state)
    rng = np.random.default_rng(seed)
    moved = [jnp.asarray(v + 0.3 * rng.standard_normal(v.shape)) for v in leaves]
    return jax.tree.unflatten(tree, moved)


@pytest.mark.parametrize(("network", "x"), [(mlp((3, 7, 2)), X), (STACK, IMAGES)])
def test_shared_weights_times_factors_are_the_members_themselves(network, x):
    model = Model(network, Categorical(2))
    state = changed(Rank1(3).init(KEY, model))
    y = np.zeros(len(x), np.int32)
    theta = jnp.asarray(Rank1(3).sample(KEY, state, 3))
    assert theta.shape == (3, model.size)
    whole = log_lik(model, Points(theta), x, y)
    np.testing.assert_allclose(log_lik(model, Factors(*state), x, y), whole, rtol=2e-4, atol=2e-5)
    assert np.ptp(np.asarray(whole), axis=0).min() > 0  # members differ


def test_shared_weights_are_trained_and_predict():
    found = fit(NET, X, Y, Criterion(1, 0.7, 50.0), key=KEY, posterior=Rank1(4), epochs=400)
    own = sum(np.size(v) for v in jax.tree.leaves(found.state))
    assert own < 4 * NET.size
    said = predictive(NET, Rank1(4), found.state, X, key=KEY)
    assert np.mean(said.labels == Y) > 0.9
    start = Rank1(4).init(KEY, NET)
    assert set(np.unique(start.factors[0].before)) == {-1.0, 1.0}
    with pytest.raises(InvalidInput, match="state must be one of Particles"):
        predictive(NET, Particles(4), found.state, X, key=KEY)


def test_shared_weights_have_the_points_divergence_and_a_likelihoods_own_parameters():
    model = Model(mlp((3, 4, 1)), Gaussian("learned"))
    state = changed(Rank1(3).init(KEY, model))
    points = ParticlesState(Rank1(3).sample(KEY, state, 3))
    expected = Particles(3).divergence(points, prior(0.5, 2.0), 1.0)
    assert Rank1(3).divergence(state, prior(0.5, 2.0), 1.0) == pytest.approx(float(expected), 1e-5)
    behind = Factors(*state).part(model.size - 1, 1)
    np.testing.assert_allclose(behind, points.mean[:, -1:])


def test_shared_weights_need_known_maps():
    model = CustomModel(lambda p, x, y: -jnp.square(y - p * x[:, 0]), jnp.array(1.0))
    with pytest.raises(InvalidInput, match=r"Rank1 needs a network whose linear maps.*Particles"):
        fit(model, X, Y, Criterion(1, 1.0), key=KEY, posterior=Rank1(2))


@pytest.mark.parametrize("joint", [True, False])
def test_more_members_than_points_that_share_weights(joint):
    """Copies of a point say nothing new: as at m = K, or at m = 1."""
    state = changed(Rank1(2).init(KEY, NET))
    criterion = Criterion(m=4, t=0.5, joint=joint)
    members = members_of(criterion, Rank1(2))
    found = log_lik(NET, Rank1(2).members(state, jnp.zeros(0), None, members), X, Y)
    assert found.shape == (members, len(X))
    once = log_lik(NET, Factors(*state), X, Y)
    np.testing.assert_allclose(found, np.repeat(once, members // 2, axis=0), rtol=1e-5)
    fit(NET, X, Y, criterion, key=KEY, posterior=Rank1(2), epochs=1)


def test_what_is_no_choice_and_what_is_no_start():
    with pytest.raises(InvalidInput, match="joint must be True or False, got 'no'"):
        Criterion(m=2, t=0.5, joint="no")
    for start in (Rank1(2).init(KEY, NET), Particles(3).init(KEY, NET)):
        with pytest.raises(InvalidInput, match=r"start must be a state of Particles\(components=2"):
            fit(NET, X, Y, Criterion(1, 0.5), key=KEY, posterior=Particles(2), start=start)


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (Particles(5), r"shape \(5, 44\) for this model, got \(5, 26\)"),
        (Mixture(5), r"shape \(5, 44\) for this model, got \(5, 26\)"),
        (Rank1(5), r"shape \(3, 7\) for this model, got \(3, 4\)"),
    ],
)
def test_a_start_of_another_network_is_told(family, words):
    small = family.init(KEY, Model(mlp((3, 4, 2)), Categorical(2)))
    with pytest.raises(InvalidInput, match=f"start must have an array of {words}. Give the"):
        fit(NET, X, Y, Criterion(5, 0.5), key=0, posterior=family, start=small)


def test_a_start_of_more_maps_is_told():
    deep = Rank1(2).init(KEY, Model(mlp((3, 7, 2, 2)), Categorical(2)))
    with pytest.raises(InvalidInput, match="start must have an array of shape"):
        fit(NET, X, Y, Criterion(2, 0.5), key=0, posterior=Rank1(2), start=deep)


def test_weights_of_a_mode_are_its_own():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2))
    y = x[:, 0] - 2 * x[:, 1]
    model = Model(mlp((2, 3, 1)), Gaussian(0.3))
    weight = rng.uniform(0.2, 2.0, (60, 2))
    weight *= 60 / weight.sum(axis=0)  # the regulariser counts rows
    start = Particles(2).init(jax.random.key(5), model)
    criterion = Criterion(m=1, t=0.7, beta=2.0, joint=False)

    def end(state, weight, k):
        return fit(
            model, x, y, criterion, key=jax.random.key(1), posterior=Particles(k), start=state,
            weight=weight, epochs=10, batch_size=20, optimiser=optax.sgd(0.02),
        ).state.mean  # fmt: skip

    both = end(start, weight, 2)
    for k in range(2):
        # A mean of modes moves each with half of the slope of one that is alone.
        own = fit(
            model, x, y, criterion, key=jax.random.key(1), posterior=Particles(1),
            start=type(start)(start.mean[k : k + 1]), weight=weight[:, k], epochs=10,
            batch_size=20, optimiser=optax.sgd(0.01),
        ).state.mean  # fmt: skip
        np.testing.assert_allclose(both[k], own[0], atol=2e-6)


def test_weights_of_modes_need_losses_of_their_own():
    with pytest.raises(InvalidInput, match="weight must have shape"):
        fit(
            Model(mlp((2, 3, 1)), Gaussian(0.3)), np.ones((4, 2)), np.ones(4),
            Criterion(m=2, t=0.7), key=0, posterior=Particles(2), weight=np.ones((4, 2)),
        )  # fmt: skip
