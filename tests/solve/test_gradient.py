"""The training engine: what J is, where training ends, and what happens when things go wrong."""

import signal
import subprocess
import sys
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from mtbayes import Criterion, InvalidInput, fixed_point, objective
from mtbayes.criteria import multi_sample_loss
from mtbayes.likelihoods import Categorical, Gaussian
from mtbayes.maths import draws
from mtbayes.models import CustomModel, Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Mixture, Particles, mean_field, prior
from mtbayes.solve import fit, path, sweep
from mtbayes.solve.gradient import Training
from mtbayes.solve.problem import Problem
from mtbayes.solve.program import Hyper, Settings, estimate, row_losses
from mtbayes.types import Rows

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.3 + 0.4 * RNG.standard_normal(60)
LABELS = (Y > 0.5).astype(int) + (Y > -1)
LINE = Model(mlp((3, 1)), Gaussian(0.4))
NET = Model(mlp((3, 7, 3)), Categorical(3))


@pytest.fixture
def double():
    with jax.enable_x64(True):
        yield


def terms(model, criterion, posterior, state, x, y, noise=None, weight=None, p=None, key=KEY):
    """J of one full batch for the given random numbers."""
    n = len(x)
    settings = Settings(model, posterior, criterion.template(), None, n)
    weight = np.ones(n) if weight is None else np.asarray(weight)
    rows = Rows(np.asarray(x), np.asarray(y), weight / weight.sum())
    numbers = tuple(np.asarray(v) for v in criterion.numbers())
    strength = np.asarray(criterion.regulariser_weight(weight.sum()))
    one = np.asarray(1.0)
    hyper = Hyper(numbers, strength, np.asarray(0.1), one, one, p or prior())
    if noise is None:
        noise = draws.normals(key, (settings.plan.size,))
    return compiled(settings, state, rows, noise, KEY, hyper)


compiled = jax.jit(estimate, static_argnums=0)
sampled_loss = jax.jit(multi_sample_loss, static_argnums=1)

# What J is.


def test_m_1_t_1_is_the_elbo(double):
    """Negative ELBO a row, written out: mean NLL of the drawn network plus KL/n."""
    posterior = mean_field()
    state = posterior.init(KEY, LINE)
    settings = Settings(LINE, posterior, Criterion(1, 1.0).template(), None, len(X))
    noise = jax.random.normal(jax.random.key(3), (settings.plan.size,))
    ours = terms(LINE, Criterion(1, 1.0), posterior, state, X, Y, noise)
    mean, std = np.asarray(state.mean[0]), np.exp(np.asarray(state.log_std[0]))
    theta = mean + std * np.asarray(noise)
    nll = -norm.logpdf(Y, X @ theta[:3] + theta[3], 0.4).mean()
    kl = np.sum(-np.log(std) + 0.5 * (std**2 + mean**2) - 0.5)
    assert float(ours.data) == pytest.approx(nll, rel=1e-10)
    assert float(ours.divergence) == pytest.approx(kl, rel=1e-10)
    assert float(ours.loss) == pytest.approx(nll + kl / len(X), rel=1e-10)


def test_regulariser_weight_and_mixed_loss(double):
    """m = 4, t = .6, beta = 3, particles: everything by hand."""
    posterior = Particles(4)
    state = posterior.init(KEY, LINE)
    ours = terms(LINE, Criterion(4, 0.6, 3.0), posterior, state, X, Y, p=prior(0.5, 2.0))
    theta = np.asarray(state.mean)
    p = np.stack([norm.pdf(Y, X @ w[:3] + w[3], 0.4) for w in theta]).mean(0)
    data = -np.mean((p**0.4 - 1) / 0.4)
    decay = 0.5 * np.sum(((theta - 0.5) / 2) ** 2) / 4
    assert float(ours.loss) == pytest.approx(data + 4 / (60 * 3.0) * decay, rel=1e-10)


def test_deep_ensemble_is_the_mean_of_its_members(double):
    posterior = Particles(5)
    state = posterior.init(KEY, NET)
    whole = terms(NET, Criterion(1, 1.0), posterior, state, X, LABELS)
    alone = [
        terms(NET, Criterion(1, 1.0), Particles(1), type(state)(member[None]), X, LABELS).loss
        for member in state.mean
    ]
    assert float(whole.loss) == pytest.approx(np.mean(alone), rel=1e-12)


def test_continuous_at_t_1_with_its_gradient(double):
    posterior = mean_field()
    state = posterior.init(KEY, NET)

    def value(state, t):
        return terms(NET, Criterion(6, t), posterior, state, X, LABELS).loss

    at, near = (jax.value_and_grad(value)(state, t) for t in (1.0, 1 - 1e-9))
    assert float(at[0]) == pytest.approx(float(near[0]), abs=1e-8)
    for a, b in zip(jax.tree.leaves(at[1]), jax.tree.leaves(near[1]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


@pytest.mark.parametrize("t_p", [1.0, 0.5, 1.2])
@pytest.mark.parametrize("posterior", [mean_field(), Mixture(2), Particles(2)])
def test_gradient_against_finite_differences(double, posterior, t_p):
    state = posterior.init(KEY, NET)
    criterion = Criterion(4, 0.7, 2.0, t_p)

    def value(state):
        return terms(NET, criterion, posterior, state, X, LABELS, p=prior(0.1, 3.0)).loss

    gradient = jax.grad(value)(state)
    leaves, tree = jax.tree.flatten(state)
    rng = np.random.default_rng(1)
    for _ in range(3):
        direction = tree.unflatten([rng.standard_normal(v.shape) for v in leaves])
        ahead, behind = (
            value(jax.tree.map(lambda s, d, h=h: s + h * d, state, direction))
            for h in (1e-5, -1e-5)
        )
        expected = sum(
            float(np.sum(np.asarray(g) * d))
            for g, d in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True)
        )
        assert float(ahead - behind) / 2e-5 == pytest.approx(expected, rel=1e-6)


def test_loss_falls_with_m_and_meets_infinity(double):
    log_lik = np.random.default_rng(0).normal(-3, 2, (240, 5))
    for t in (1.0, 0.5, 0.1):
        losses = [np.asarray(sampled_loss(log_lik, m, t)) for m in (1, 2, 8, 240)]
        for larger, smaller in pairwise(losses):
            assert np.all(larger > smaller)
        whole = np.asarray(sampled_loss(log_lik, np.inf, t))
        np.testing.assert_allclose(losses[-1], whole, rtol=1e-12)
    linear = [np.asarray(sampled_loss(log_lik, m, 0.0)) for m in (1, 240)]
    np.testing.assert_allclose(*linear, rtol=1e-12)


def test_order_of_members_is_irrelevant(double):
    log_lik = np.random.default_rng(0).normal(-3, 2, (6, 5))
    shuffled = log_lik[np.array([3, 0, 5, 1, 4, 2])]
    np.testing.assert_allclose(
        sampled_loss(log_lik, 6, 0.3), sampled_loss(shuffled, 6, 0.3), rtol=1e-13
    )


def test_mixture_of_one_is_mean_field():
    assert mean_field() == Mixture(1)


@pytest.mark.parametrize("n", [60, 53])
def test_minibatches_average_to_the_whole(double, n):
    """Also when the last batch is not full. Particles have no noise, so this is exact."""
    criterion, posterior = Criterion(3, 0.6, 2.0), Particles(3)
    weight = np.random.default_rng(0).random(n)
    rows = Rows(X[:n], LABELS[:n], weight)
    training = Training(Problem(NET, criterion, rows, posterior, batch_size=16), KEY)
    state = training.start.posterior
    whole = terms(NET, criterion, posterior, state, X[:n], LABELS[:n], weight=weight)
    rows, found = training.feed.rows, []
    for picked in np.asarray(training.feed.order(0))[: training.schedule.batches]:
        w = np.where(picked < 0, 0, np.asarray(rows.weight)[picked])
        batch = Rows(rows.x[picked], rows.y[picked], jnp.asarray(w))
        found.append(
            compiled(training.settings, state, batch, jnp.zeros(0), KEY, training.hyper).loss
        )
    assert np.mean(found) == pytest.approx(float(whole.loss), rel=1e-12)


def test_order_visits_each_row_once_an_epoch():
    rows = Rows(X, LABELS, None)
    training = Training(Problem(NET, Criterion(1, 1.0), rows, epochs=60, batch_size=16), KEY)
    order = np.asarray(training.feed.order(0)).reshape(training.schedule.together, -1)
    assert training.schedule.together > 1
    for epoch in order:
        assert sorted(epoch[epoch >= 0]) == list(range(60))
    assert not np.array_equal(order[0], order[1])


def test_both_ways_to_draw_estimate_the_same_j(double):
    """Means over 4,000 draws differ by less than 5 standard errors: fails once in 10^6."""
    model = Model(mlp((3, 4, 3)), Categorical(3))
    posterior = mean_field()
    state = posterior.init(KEY, model)
    state = state._replace(log_std=np.full_like(state.log_std, np.log(0.6)))
    criterion = Criterion(3, 0.5)
    settings = Settings(model, posterior, criterion.template(), None, 8)
    hyper = Training(Problem(model, criterion, Rows(X[:8], LABELS[:8], None)), KEY).hyper
    rows = Rows(X[:8], LABELS[:8], np.full(8, 1 / 8))

    class Ways(Settings):
        forced = None

        @property
        def plan(self):
            offset, parts = 0, []
            for linear in model.linears:
                parts.append((linear.start, offset))
                offset += 3 * (8 * linear.units if self.forced == "rows" else linear.size)
            by_row = tuple(parts) if self.forced == "rows" else ()
            by_weight = () if self.forced == "rows" else tuple(parts)
            return settings.plan._replace(by_row=by_row, by_weight=by_weight, size=offset)

    means, errors = [], []
    for forced in ("rows", "weights"):
        ways = Ways(*settings)
        ways.forced = forced
        noise = draws.normals(draws.key(5), (4000, ways.plan.size))
        drawn = jax.vmap(lambda e, w=ways: estimate(w, state, rows, e, KEY, hyper).data)
        data = np.asarray(jax.jit(drawn)(noise))
        means.append(float(data.mean()))
        errors.append(float(data.std()) / np.sqrt(4000))
    assert abs(means[0] - means[1]) < 5 * np.hypot(*errors)
    assert errors[0] < 0.01 * means[0]


@pytest.mark.parametrize("t_p", [1.0, 0.5, 1.5])
def test_mixture_divergence_bounds_the_true_one(double, t_p):
    """One parameter, two components, by quadrature."""
    posterior = Mixture(2)
    mean, std = np.array([[-1.0], [2.0]]), np.array([[0.5], [0.8]])
    state = type(posterior.init(KEY, LINE))(np.asarray(mean), np.log(std))
    ours = float(posterior.divergence(state, prior(0.3, 2.0), t_p))
    grid = np.linspace(-20, 20, 40001)
    q = 0.5 * (norm.pdf(grid, -1, 0.5) + norm.pdf(grid, 2, 0.8))
    p, step = norm.pdf(grid, 0.3, 2.0), grid[1] - grid[0]
    if t_p == 1:
        true = np.sum(q * np.log(q / p), where=q > 0) * step
    else:
        true = np.log(np.sum(q**t_p * p ** (1 - t_p)) * step) / (t_p - 1)
    assert true < ours < true + np.log(2) + 1e-6


# Where training ends.


def test_conjugate_linear_model(double):
    """Mean field at m = t = 1: the exact mean, and the inverse of the precision's diagonal."""
    solution = fit(LINE, X, Y, Criterion(1, 1.0), key=KEY, epochs=8000, learning_rate=0.005)
    design = np.c_[X, np.ones(60)]
    precision = design.T @ design / 0.4**2 + np.eye(4)
    mean = np.linalg.solve(precision, design.T @ Y / 0.4**2)
    std = np.diag(precision) ** -0.5

    def exact(mean, std):
        misfit = np.mean((Y - design @ mean) ** 2 + design**2 @ std**2) / (2 * 0.4**2)
        kl = np.sum(-np.log(std) + 0.5 * (std**2 + mean**2) - 0.5)
        return misfit + np.log(0.4) + 0.5 * np.log(2 * np.pi) + kl / 60

    found = exact(np.asarray(solution.state.mean[0]), np.exp(np.asarray(solution.state.log_std[0])))
    assert found - exact(mean, std) < 1e-4
    np.testing.assert_allclose(solution.state.mean[0], mean, atol=0.02)
    np.testing.assert_allclose(np.exp(solution.state.log_std[0]), std, rtol=0.1)


def test_one_parameter_against_the_grid(double):
    """θ in one dimension: the best Gaussian, which comes close to the exact minimum over all q."""
    data = np.array([-0.8, 0.1, 0.4, 1.5, 2.2])
    criterion = Criterion(5, 0.7, 5.0)
    model = CustomModel(
        lambda theta, x, y: -0.5 * jnp.square(y - theta) - 0.5 * np.log(2 * np.pi), jnp.array(0.3)
    )
    options = {"prior": prior(0.0, 3.0), "epochs": 3000, "learning_rate": 0.03}
    solution = fit(model, np.zeros((5, 1)), data, criterion, key=KEY, **options)
    theta = np.linspace(-12, 12, 601)
    p = norm.pdf(theta, 0, 3) / norm.pdf(theta, 0, 3).sum()
    log_lik = norm.logpdf(data[None], theta[:, None])

    def exact(mean, log_std):
        q = norm.pdf(theta, mean, np.exp(log_std))
        return objective(q / q.sum(), log_lik, p, criterion)

    found = [float(v[0, 0]) for v in solution.state]
    gaussian = minimize(lambda z: exact(*z), [0.5, 0.0], method="Nelder-Mead").fun
    everything = fixed_point(log_lik, p, criterion)
    assert exact(*found) < gaussian + 1e-4
    assert everything.trace[-1] < exact(*found) < everything.trace[-1] + 5e-3
    q = norm.pdf(theta, found[0], np.exp(found[1]))
    assert 0.5 * np.abs(q / q.sum() - everything.state).sum() < 0.04


def test_row_weight_two_is_a_row_twice(double):
    weight = np.where(np.arange(60) < 10, 2.0, 1.0)
    options = {"key": KEY, "posterior": Particles(2), "epochs": 30, "batch_size": 100}
    weighted = fit(NET, X, LABELS, Criterion(2, 0.7), weight=weight, **options)
    twice = fit(NET, np.r_[X, X[:10]], np.r_[LABELS, LABELS[:10]], Criterion(2, 0.7), **options)
    np.testing.assert_allclose(weighted.state.mean, twice.state.mean, rtol=1e-6, atol=1e-9)


def test_same_key_same_result():
    first, again, other = (
        fit(NET, X, LABELS, Criterion(2, 0.7), key=jax.random.key(k), epochs=3) for k in (4, 4, 5)
    )
    np.testing.assert_array_equal(first.state.mean, again.state.mean)
    assert not np.array_equal(first.state.mean, other.state.mean)


def test_trace_and_callback_tell_the_terms():
    seen = []
    solution = fit(NET, X, LABELS, Criterion(2, 0.7), key=KEY, epochs=600, callback=seen.append)
    assert solution.trace.shape == (len(seen), 3)
    assert seen[-1].epoch == seen[-1].epochs == 600
    weight = Criterion(2, 0.7).regulariser_weight(60)
    loss, data, divergence = solution.trace[-1]
    assert loss == pytest.approx(data + weight * divergence, rel=1e-4)
    assert solution.trace[-1, 0] < solution.trace[0, 0]


def test_any_optax_optimiser():
    solution = fit(NET, X, LABELS, Criterion(2, 0.7), key=KEY, epochs=5, optimiser=optax.sgd(0.1))
    assert solution.status.converged


def test_float64_when_jax_says_so(double):
    assert fit(NET, X, LABELS, Criterion(2, 0.7), key=KEY, epochs=1).state.mean.dtype == jnp.float64


def test_float32_by_default():
    assert fit(NET, X, LABELS, Criterion(2, 0.7), key=KEY, epochs=1).state.mean.dtype == jnp.float32


# Many fits.


def test_sweep_equals_separate_fits(double):
    criteria = [Criterion(2, t, beta) for t, beta in ((1.0, 1.0), (0.6, 3.0), (0.3, 1.0))]
    keys = jax.random.split(KEY, 2)
    options = {"epochs": 4, "batch_size": 16, "posterior": Mixture(2)}
    table = sweep(NET, X, LABELS, criteria, keys=keys, width=4, **options)
    for criterion, row in zip(criteria, table, strict=True):
        for key, together in zip(keys, row, strict=True):
            alone = fit(NET, X, LABELS, criterion, key=key, **options)
            np.testing.assert_allclose(together.state.mean, alone.state.mean, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(together.trace, alone.trace, rtol=1e-8)


def test_sweep_refuses_criteria_of_different_kinds():
    with pytest.raises(InvalidInput, match="differ in t and beta alone"):
        sweep(NET, X, LABELS, [Criterion(2, 1.0), Criterion(4, 1.0)], keys=[KEY])


def test_path_reaches_the_objective_of_separate_fits():
    """Eleven values of t for the steps of three fits, each J within 1 % of its own fit's."""
    criteria = [Criterion(4, 1 - 0.1 * i, 5.0) for i in range(11)]
    epochs = 300
    walked = path(NET, X, LABELS, criteria, key=KEY, epochs=epochs)
    assert sum(s.status.steps for s in walked) <= 3 * epochs
    for criterion, solution in zip(criteria[1::3], walked[1::3], strict=True):
        alone = fit(NET, X, LABELS, criterion, key=KEY, epochs=epochs)
        settings = Settings(NET, mean_field(), criterion.template(), None, 60)
        values = []
        for state in (solution.state, alone.state):
            losses = row_losses(
                settings, state, X, LABELS, jax.random.key(9), criterion.numbers(), members=1000
            )
            kl = float(mean_field().divergence(state, prior(), 1.0))
            values.append(losses.mean() + criterion.regulariser_weight(60) * kl)
        assert values[0] < 1.01 * values[1]


# When things go wrong.


def test_divergence_returns_the_last_good_state():
    solution = fit(LINE, 1e18 * X, Y, Criterion(1, 1.0), key=KEY, epochs=2, learning_rate=1e20)
    assert not solution.status.converged
    assert "no longer finite" in str(solution.status)
    assert "learning_rate" in str(solution.status)
    assert np.isfinite(solution.state.mean).all()


def test_early_stopping_returns_the_best_state():
    """Held-out labels that contradict the training ones: the first state is the best."""
    wrong = (LABELS + 1) % 3
    solution = fit(
        NET,
        X,
        LABELS,
        Criterion(1, 1.0, 100.0),
        key=KEY,
        epochs=6000,
        batch_size=60,
        held_out=(X, wrong),
        patience=2,
    )
    assert solution.status.steps < 6000
    assert "best after epoch" in str(solution.status)


CHILD = """
import sys, time
import jax, numpy as np
from mtbayes import Criterion
from mtbayes.likelihoods import Categorical
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Mixture
from mtbayes.solve import fit
x = np.random.default_rng(0).standard_normal((600, 4)); y = (x[:, 0] > 0).astype(int)
model = Model(mlp((4, 6, 2)), Categorical(2))
def learn(path, hear):
    return fit(
        model, x, y, Criterion(2, 0.5), key=jax.random.key(1), posterior=Mixture(2), epochs=60,
        batch_size=8, held_out=(x[:50], y[:50]), patience=99, checkpoint=path,
        callback=lambda progress: hear(progress.epoch),
    )
def pause(epoch):
    print(epoch, flush=True)
    time.sleep(0.3)
"""


def test_killed_fit_goes_on_bit_for_bit(tmp_path):
    """Begun in another process, which is killed; the whole fit and the rest of it are made here."""
    exec(CHILD, here := {})
    epochs, later = [], []
    whole = here["learn"](tmp_path / "a.mtb", epochs.append)
    assert len(epochs) >= 4
    code = CHILD + "learn(sys.argv[1], pause)"
    command = [sys.executable, "-c", code, str(tmp_path / "b.mtb")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killed:
        for line in killed.stdout:
            if int(line) >= epochs[1]:
                killed.send_signal(signal.SIGKILL)
                break
    assert killed.returncode == -signal.SIGKILL
    (tmp_path / ".b.mtb.half_one.mtb").write_text("what a write leaves that was killed midway")
    resumed = here["learn"](tmp_path / "b.mtb", later.append)
    assert later[0] > epochs[0]
    assert later[-1] == epochs[-1]
    for one, other in zip(whole.state, resumed.state, strict=True):
        np.testing.assert_array_equal(one, other)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mtb", "b.mtb"]


def test_checkpoint_of_another_fit_is_refused(tmp_path):
    file = tmp_path / "c.mtb"
    fit(NET, X, LABELS, Criterion(2, 0.7), key=KEY, epochs=2, checkpoint=file)
    with pytest.raises(InvalidInput, match="criterion"):
        fit(NET, X, LABELS, Criterion(2, 0.6), key=KEY, epochs=2, checkpoint=file)
    with pytest.raises(InvalidInput, match="rows, targets or weights"):
        fit(NET, X + 1, LABELS, Criterion(2, 0.7), key=KEY, epochs=2, checkpoint=file)
    done = fit(NET, X, LABELS, Criterion(2, 0.7), key=KEY, epochs=2, checkpoint=file)
    assert done.status.steps == 2


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"PK" + b])
def test_damaged_checkpoint_is_named(tmp_path, damage):
    file = tmp_path / "c.mtb"
    fit(NET, X, LABELS, Criterion(2, 0.7), key=KEY, epochs=1, checkpoint=file)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(InvalidInput, match=r"c\.mtb.*damaged or was not written by mtbayes"):
        fit(NET, X, LABELS, Criterion(2, 0.7), key=KEY, epochs=1, checkpoint=file)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": X[:0], "y": LABELS[:0]}, ["x", "at least one row", "(0, 3)"]),
        ({"x": np.where(X > 2, np.nan, X)}, ["x", "finite", "nan"]),
        ({"x": np.where(X > 2, np.inf, X)}, ["x", "finite", "inf"]),
        ({"y": LABELS + 1}, ["y", "0..2", "3"]),
        ({"y": LABELS.astype(float)}, ["y", "whole numbers", "dtype float", "LabelEncoder"]),
        ({"y": LABELS[:-1]}, ["y", "60 rows", "(59,)"]),
        ({"y": LABELS[:, None]}, ["y", "(60,)", "(60, 1)", "ravel"]),
        ({"x": X.astype(str)}, ["x", "real numbers", "dtype <U"]),
        ({"x": X + 1j}, ["x", "real numbers", "complex"]),
        ({"x": 1e300 * X}, ["x", "finite", "inf"]),
        ({"prior": prior(0.0, np.ones(5))}, ["prior std", "52", "(5,)"]),
        ({"posterior": mean_field}, ["posterior", "brackets"]),
        ({"criterion": None}, ["criterion", "None", "Criterion("]),
        ({"held_out": X}, ["held_out", "pair", "ndarray"]),
        ({"x": X[:, :2]}, ["x", "(n, 3)", "(60, 2)"]),
        ({"weight": np.ones(3)}, ["weight", "(60,)", "(3,)"]),
        ({"epochs": 0}, ["epochs", "at least 1", "0"]),
        ({"batch_size": 2.5}, ["batch_size", "2.5"]),
        ({"learning_rate": 0.0}, ["learning_rate", "above 0", "0.0"]),
        ({"posterior": Mixture(3)}, ["m", "3 components", "m = 2"]),
        ({"criterion": Criterion(2, 0.5, 1.0, 2.0), "prior": prior(0.0, 0.01)}, ["t_p", "inf"]),
        ({"model": Model(mlp((3, 4)), Categorical(3))}, ["network", "3 outputs", "4"]),
        ({"held_out": (X[:0], LABELS[:0])}, ["held_out x", "at least one row"]),
    ],
)
def test_bad_input_is_named(change, words):
    given = {"model": NET, "x": X, "y": LABELS, "criterion": Criterion(2, 0.5), **change}
    positional = [given.pop(k) for k in ("model", "x", "y", "criterion")]
    with pytest.raises(InvalidInput) as error:
        fit(*positional, key=KEY, **given)
    for word in words:
        assert word in str(error.value)


def test_prior_without_spread_is_refused():
    with pytest.raises(InvalidInput, match=r"prior std.*above 0.*0"):
        prior(0.0, 0.0)


def test_prior_leaf_by_leaf():
    theta = jnp.arange(NET.size, dtype=float)
    like = NET.unravel(theta)
    std = jax.tree.map(lambda leaf: 1.0 + leaf.ndim, like)
    flat = prior(0.0, std, like=like).std
    assert flat.shape == (NET.size,)
    assert sorted(set(np.asarray(flat).tolist())) == [2.0, 3.0] or 1.0 in np.asarray(flat)


def test_functions_of_wrong_shape_are_named():
    summed = CustomModel(lambda p, x, y: jnp.sum(-jnp.square(y - x[:, 0] * p)), jnp.array(1.0))
    with pytest.raises(InvalidInput, match=r"log_lik function must return shape \(60,\)"):
        fit(summed, X, Y, Criterion(1, 1.0), key=KEY)


def test_function_that_gives_nan_is_named():
    bad = CustomModel(lambda p, x, y: jnp.where(y > 1, jnp.nan, p), jnp.array(1.0))
    with pytest.raises(InvalidInput, match="log_lik function must be free of NaN"):
        fit(bad, X, Y, Criterion(1, 1.0), key=KEY)


def test_function_with_other_arguments_is_named():
    with pytest.raises(InvalidInput, match=r"must take \(params, x, y\)"):
        fit(CustomModel(lambda p, x: x[:, 0], 1.0), X, Y, Criterion(1, 1.0), key=KEY)


@pytest.mark.parametrize("params", [1.0, 1, {"a": np.zeros(1)}, [0.5]])
def test_parameters_of_any_kind(params):
    model = CustomModel(
        lambda p, x, y: -jnp.square(y - x[:, 0] * jnp.ravel(jax.tree.leaves(p)[0])[0]), params
    )
    assert fit(model, X, Y, Criterion(1, 1.0), key=0, epochs=1).status.converged


def test_sweep_keeps_the_last_good_state():
    bad, good = sweep(
        LINE, X, Y, [Criterion(1, 1.0, 1e-40), Criterion(1, 1.0)], keys=[KEY], epochs=4,
        learning_rate=0.5,
    )  # fmt: skip
    assert not bad[0].status.converged
    assert "no longer finite" in str(bad[0].status)
    assert np.isfinite(bad[0].state.mean).all()
    assert good[0].status.converged
    assert good[0].trace.shape == (4, 3)


def test_early_stopped_fit_stays_stopped(tmp_path):
    options = {
        "key": KEY,
        "epochs": 400,
        "batch_size": 60,
        "held_out": (X, (LABELS + 1) % 3),
        "patience": 2,
        "checkpoint": tmp_path / "c.mtb",
    }
    first, again = (fit(NET, X, LABELS, Criterion(1, 1.0, 100.0), **options) for _ in range(2))
    assert first.status.steps < 400
    assert str(first.status) == str(again.status)
    np.testing.assert_array_equal(first.state.mean, again.state.mean)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"optimiser": optax.sgd(0.1)}, {"optimiser": optax.sgd(5.0)}, "optimiser"),
        ({"optimiser": optax.sgd(0.1)}, {"optimiser": optax.adam(0.1)}, "optimiser"),
        ({"held_out": (X, LABELS)}, {"held_out": (X + 1, LABELS)}, "held_out"),
        ({}, {"start": mean_field().init(jax.random.key(7), NET)}, "start"),
    ],
)
def test_checkpoint_knows_every_setting(tmp_path, first, second, words):
    options = {"key": KEY, "epochs": 1, "checkpoint": tmp_path / "c.mtb"}
    fit(NET, X, LABELS, Criterion(1, 1.0), **options, **first)
    with pytest.raises(InvalidInput, match=words):
        fit(NET, X, LABELS, Criterion(1, 1.0), **options, **second)


def test_large_whole_targets_keep_their_size():
    model = Model(mlp((3, 1)), Gaussian(1e10))
    values = [
        fit(model, X, y, Criterion(1, 1.0), key=KEY, epochs=1).trace[0, 1]
        for y in (np.full(60, 3 * 10**10), np.full(60, 3e10))
    ]
    assert values[0] == values[1]


def test_numbers_of_rows_that_are_alike_share_a_program():
    """39 and 60 rows: equal batches of 16, room for 64 rows, and as many epochs a chunk."""
    traced = []

    class Counted(Gaussian):
        def log_lik(self, outputs, own, y):
            traced.append(outputs.shape)
            return super().log_lik(outputs, own, y)

    model = Model(mlp((3, 1)), Counted(0.4))
    counts = []
    for n in (39, 60, 53):
        fit(model, X[:n], Y[:n], Criterion(2, 0.7), key=KEY, epochs=3, batch_size=16)
        counts.append(len(traced))
    assert counts[0] > 0
    assert counts == counts[:1] * 3
