import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mtbayes.errors import InvalidInput
from mtbayes.maths import exp_t, log_exp_t, log_t, log_t_from_log

TS = [0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 2.0**-53, 1]
LOG_XS = [-1e6, -1e4, -750, -700, -50, -3.7, -1, -0.5, -0.1, -1e-3, -1e-8, -1e-15]
LOG_XS += [0, 1e-15, 1e-8, 1e-3, 0.1, 0.5, 1, 3.7, 50, 300, 700]
XS = [1e-300, 1e-100, 1e-8, 0.02, 0.3, 0.9, 1 - 1e-9, 1 - 2.0**-53]
XS += [1, 1 + 2.0**-52, 1 + 1e-9, 1.1, 2.5, 40, 1e8, 1e100, 1e300]
TWELVE_DIGITS = 1e-12
EPS = np.finfo(float).eps

FUNCTIONS = {"log_t": log_t, "log_t_from_log": log_t_from_log, "exp_t": exp_t}
FUNCTIONS["log_exp_t"] = log_exp_t

reproducible = settings(max_examples=150, deadline=None, derandomize=True)
t_grid = st.one_of(st.sampled_from(TS), st.floats(0, 1))
arguments = st.floats(1e-12, 1e12)


# Values


@pytest.mark.parametrize("t", TS)
def test_log_t_from_log_has_twelve_digits(exact, kind, t):
    got = log_t_from_log(kind(np.array(LOG_XS, float)), t)
    assert got.dtype == np.float64
    for log_x, value in zip(LOG_XS, np.asarray(got), strict=True):
        assert exact.error(value, exact.log_t_from_log(log_x, t)) < TWELVE_DIGITS, log_x


@pytest.mark.parametrize("t", TS)
def test_log_t_has_twelve_digits(exact, kind, t):
    got = log_t(kind(np.array(XS, float)), t)
    assert got.dtype == np.float64
    for x, value in zip(XS, np.asarray(got), strict=True):
        assert exact.error(value, exact.log_t(x, t)) < TWELVE_DIGITS, x


@pytest.mark.parametrize("t", TS)
def test_zero_has_a_bounded_t_logarithm_below_one(exact, kind, t):
    floor = -np.inf if t == 1 else -1 / (1 - exact(t))
    assert exact.error(log_t(kind(0.0), t), floor) < TWELVE_DIGITS
    assert exact.error(log_t_from_log(kind(-np.inf), t), floor) < TWELVE_DIGITS


@pytest.mark.parametrize("t", TS)
def test_inverse_has_twelve_digits(exact, kind, t):
    # Down to a thousandth above the bound -1/(1-t); at t = 1 there is none.
    floor = 1 / (1 - t) if t < 1 else 1e3
    ys = np.array([-f * floor for f in (0.999, 0.9, 0.5, 0.1, 1e-6)])
    ys = np.concatenate([ys, [-0.3, -1e-9, 0, 1e-9, 0.5, 3, 50, 500]])
    log_got, got = log_exp_t(kind(ys), t), exp_t(kind(ys), t)
    for y, log_value, value in zip(ys, np.asarray(log_got), np.asarray(got), strict=True):
        log_exact = exact.log_exp_t(y, t)
        assert exact.error(log_value, log_exact) < TWELVE_DIGITS, y
        if log_exact > -700:  # what exp can represent
            # The relative condition of exp_t in y: no code can do better than EPS times this.
            condition = abs(y) / float(1 + (1 - exact(t)) * exact(y))
            bound = TWELVE_DIGITS + 4 * EPS * condition
            assert exact.error(value, exact.mp.exp(log_exact)) < bound, y
        else:
            assert 0 <= value < 1e-300


def test_inverse_is_zero_at_and_below_the_bound(kind):
    ys = kind(np.array([-2.0, -2.5, -1e300]))
    assert np.array_equal(exp_t(ys, 0.5), [0, 0, 0])
    assert np.array_equal(log_exp_t(ys, 0.5), [-np.inf] * 3)
    # Above order 1 the base vanishes at y = 1/(t-1) and the power is negative.
    assert np.array_equal(log_exp_t(kind(np.array([1.0, 2.0])), 2.0), [np.inf, np.inf])


def test_log_exp_t_above_order_one(exact, kind):
    for y, t in [(0.3, 1 + 1e-9), (0.3, 1.5), (-4.0, 2.0), (0.9, 2.0), (-1e3, 1.01)]:
        assert exact.error(log_exp_t(kind(y), t), exact.log_exp_t(y, t)) < TWELVE_DIGITS


def test_temperature_broadcasts_against_x(exact, kind):
    xs, ts = np.array([0.2, 3.0]), np.array([[0.3], [1.0], [0.0]])
    got = np.asarray(log_t(kind(xs), kind(ts)))
    assert got.shape == (3, 2)
    for (i, j), value in np.ndenumerate(got):
        assert exact.error(value, exact.log_t(xs[j], ts[i, 0])) < TWELVE_DIGITS


def test_float32_is_the_default_of_jax_and_right_to_a_millionth(exact):
    log_xs = np.array([-1e4, -50, -3.7, -0.5, -1e-3, -1e-6, 1e-6, 0.5, 3.7, 8], np.float32)
    ts = np.array(TS, np.float32)
    got = jax.jit(log_t_from_log)(log_xs, ts[:, None])
    back = jax.jit(log_exp_t)(got, ts[:, None])
    assert got.dtype == back.dtype == jnp.float32
    for (i, j), value in np.ndenumerate(np.asarray(got)):
        assert exact.error(value, exact.log_t_from_log(log_xs[j], ts[i])) < 2e-6
        if (1 - ts[i]) * abs(log_xs[j]) < 2:
            assert exact.error(np.asarray(back)[i, j], log_xs[j]) < 1e-5
    direct = log_t(jnp.exp(jnp.asarray(log_xs[2:])), 0.3)
    assert direct.dtype == jnp.float32
    assert jnp.allclose(direct, log_t_from_log(jnp.asarray(log_xs[2:]), 0.3), rtol=3e-6, atol=2e-7)


# The paper's rules


@given(x=arguments, y=arguments, t=t_grid)
@reproducible
def test_product_rule(x, y, t):
    u, v = log_t(x, t), log_t(y, t)
    terms = [u, v, (1 - t) * u * v]
    scale = sum(map(abs, terms)) + 1
    assert abs(log_t(x * y, t) - sum(terms)) <= 1e-13 * scale


@given(x=arguments, y=arguments, t=t_grid)
@reproducible
def test_quotient_rule(x, y, t):
    u, v = log_t(x, t), log_t(y, t)
    factor = y ** (t - 1)
    scale = factor * (abs(u) + abs(v)) + 1
    assert abs(log_t(x / y, t) - factor * (u - v)) <= 1e-13 * scale


@given(x=st.floats(0, 1e300), t=t_grid)
@reproducible
def test_bounded_below(x, t):
    value = log_t(x, t)
    assert t == 1 or value >= -1 / (1 - t)
    assert value <= x - 1 + 1e-12 * max(x, 1)  # t = 0 is the largest, by concavity


@given(x=arguments, y=arguments, share=st.floats(0, 1), t=t_grid)
@reproducible
def test_concave(x, y, share, t):
    u, v = log_t(x, t), log_t(y, t)
    chord = share * u + (1 - share) * v
    middle = log_t(share * x + (1 - share) * y, t)
    assert middle >= chord - 1e-13 * (abs(u) + abs(v) + abs(middle))


@given(log_x=st.floats(-600, 600, allow_subnormal=False), step=st.floats(0, 1e-5))
@reproducible
def test_limit_is_the_logarithm(log_x, step):
    # log_t x = log x (1 + z/2 + ...), z = (1-t) log x
    z = step * log_x
    assert abs(log_t_from_log(log_x, 1 - step) - log_x) <= abs(log_x) * (abs(z) + 1e-14) + 1e-300


@given(x=arguments, t=t_grid)
@reproducible
def test_exp_t_inverts_log_t(x, t):
    y = log_t(x, t)
    condition = abs(y) * x ** (t - 1) + 1
    assert exp_t(y, t) == pytest.approx(x, rel=1e-14 * condition * max(1, abs(np.log(x))))


@given(x=arguments, y=arguments, t=t_grid)
@reproducible
def test_increasing(x, y, t):
    assume(x < y)
    assert log_t(x, t) <= log_t(y, t)


# Tracing


def test_one_compilation_serves_every_temperature(exact, x64):
    traces = []

    @jax.jit
    def f(log_x, t):
        traces.append(t)
        return log_t_from_log(log_x, t), jax.grad(lambda u: log_t_from_log(u, t))(log_x)

    for t in TS:
        value, slope = f(-3.7, float(t))
        assert exact.error(value, exact.log_t_from_log(-3.7, t)) < TWELVE_DIGITS
        assert exact.error(slope, exact.mp.exp((1 - exact(t)) * -3.7)) < TWELVE_DIGITS
    assert len(traces) == 1


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_vmap_over_temperatures(f, x64):
    ts = jnp.array(TS, float)
    got = jax.vmap(f, (None, 0))(0.7, ts)
    assert got.tolist() == pytest.approx([float(f(0.7, t)) for t in TS], rel=1e-14)


# Derivatives: at every temperature and argument at once, so that JAX compiles once a test

GRADIENT_LOG_XS = [-1e6, -700, -50, -3.7, -0.31, -0.29, -1e-3, -1e-9, 0, 1e-9, 0.29, 0.31, 3.7, 600]
GRADIENT_XS = [1e-12, 1e-8, 0.3, 0.75, 1, 1 + 1e-9, 2.5, 1e8]
GRADIENT_YS = [-0.95, -0.5, -0.101, -0.099, -1e-6, 0, 1e-6, 0.099, 0.101, 2, 40]
forward_and_reverse = pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])


def over_table(f, xs):
    """f(x, t) for each x of xs and t of TS: pairs of (x, t) and the value."""
    table = jax.jit(jax.vmap(jax.vmap(f, (0, None)), (None, 0)))
    values = np.asarray(table(jnp.array(xs, float), jnp.array(TS, float)))
    return [((xs[j], TS[i]), value) for (i, j), value in np.ndenumerate(values)]


@forward_and_reverse
@pytest.mark.parametrize(
    ("name", "argnum", "xs"),
    [
        ("log_t_from_log", 0, GRADIENT_LOG_XS),
        ("log_t_from_log", 1, GRADIENT_LOG_XS),
        ("log_t", 0, GRADIENT_XS),
        ("log_t", 1, GRADIENT_XS),
        ("exp_t", 0, GRADIENT_YS),
        ("exp_t", 1, GRADIENT_YS),
        ("log_exp_t", 0, GRADIENT_YS),
        ("log_exp_t", 1, GRADIENT_YS),
    ],
)
def test_derivatives(exact, x64, mode, name, argnum, xs):
    for at, got in over_table(mode(FUNCTIONS[name], argnum), xs):
        want = exact.diff(getattr(exact, name), at, argnum)
        assert exact.error(got, want, least=1e-18) < TWELVE_DIGITS, at


@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
def test_second_derivative_in_log_x(exact, x64, outer, inner):
    for at, got in over_table(outer(inner(log_t_from_log)), GRADIENT_LOG_XS):
        a = 1 - exact(at[1])
        want = a * exact.mp.exp(a * exact(at[0]))
        assert exact.error(got, want, least=1e-300) < TWELVE_DIGITS, at


@forward_and_reverse
def test_derivatives_at_zero_likelihood(exact, x64, mode):
    """All limits are finite below t = 1, but for the slope in x itself: +inf, and never NaN."""
    for (_, t), got in over_table(mode(log_t_from_log, 0), [-np.inf]):
        assert got == (1 if t == 1 else 0)
    for (_, t), got in over_table(mode(mode(log_t_from_log)), [-np.inf]):
        assert got == 0, t
    for (_, t), got in over_table(mode(log_t, 0), [0.0]):
        assert got == (1 if t == 0 else np.inf), t
    for f, zero in [(log_t_from_log, -np.inf), (log_t, 0.0)]:
        for (_, t), got in over_table(mode(f, 1), [zero]):
            in_t = -1 / (1 - exact(t)) ** 2 if t < 1 else -np.inf
            assert exact.error(got, in_t) < TWELVE_DIGITS, t


@forward_and_reverse
def test_inverse_is_flat_below_the_bound(x64, mode):
    assert [float(jax.jit(mode(exp_t, i))(-2.5, 0.5)) for i in (0, 1)] == [0, 0]


def test_gradient_of_a_batch_under_jit_broadcasts_t(exact, x64):
    log_x = np.array([-2.0, -0.3, 1.5])

    @jax.jit
    def slopes(t):
        return jax.grad(lambda u, s: log_t_from_log(u, s).sum(), (0, 1))(log_x, t)

    in_log_x, in_t = slopes(0.3)
    assert in_log_x.shape == (3,)
    assert in_t.shape == ()
    assert in_log_x.tolist() == pytest.approx(np.exp(0.7 * np.asarray(log_x)), rel=1e-14)
    total = sum(exact.diff(exact.log_t_from_log, (float(u), 0.3), 1) for u in log_x)
    assert exact.error(in_t, total) < TWELVE_DIGITS
    each = jax.jit(jax.vmap(jax.grad(log_t_from_log, 1), (0, None)))(log_x, 0.3)
    assert float(np.sum(each)) == pytest.approx(float(total), rel=1e-14)


# Errors


@pytest.mark.parametrize("f", [log_t, log_t_from_log, exp_t])
@pytest.mark.parametrize(
    ("t", "shown"),
    [
        (1.5, "1.5"),
        (-0.1, "-0.1"),
        (np.nan, "nan"),
        ("a", "'a'"),
        (np.array([0.5, 1.2]), "1.2"),
        (jnp.array([1.25, 0.5]), "1.25"),
    ],
)
def test_temperature_outside_is_refused(f, t, shown):
    with pytest.raises(InvalidInput) as caught:
        f(0.5, t)
    message = str(caught.value)
    assert message.startswith("t must")
    assert f"got {shown}." in message
    assert "[0, 1]" in message
    assert "smaller is more robust" in message
