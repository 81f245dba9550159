"""The exact side of every comparison: definitions of the paper, in mpmath with 60 digits."""

import jax
import mpmath
import numpy as np
import pytest


class Exact:
    """Numbers go in as doubles and count as exactly what they are."""

    def __init__(self):
        self.mp = mpmath.mp.clone()
        self.mp.dps = 60

    def __call__(self, number):
        """The exact value of a double (a float32, a JAX scalar), or an mpmath number as it is."""
        return self.mp.mpf(number if isinstance(number, self.mp.mpf) else float(number))

    def log_t_from_log(self, log_x, t):
        log_x, a = self(log_x), 1 - self(t)
        return log_x if a == 0 else self.mp.expm1(a * log_x) / a

    def log_t(self, x, t):
        return self.log_t_from_log(self.mp.log(self(x)) if x > 0 else -self.mp.inf, t)

    def log_exp_t(self, y, t):
        y, a = self(y), 1 - self(t)
        return y if a == 0 else self.mp.log1p(a * y) / a

    def exp_t(self, y, t):
        return self.mp.exp(self.log_exp_t(y, t))

    def diff(self, f, at, argnum):
        """Derivative of f in one of its arguments: central differences, to about 25 digits."""
        at = [self(v) for v in at]
        h = self.mp.mpf(10) ** -15 * (abs(at[argnum]) or 1)
        high, low = (f(*at[:argnum], at[argnum] + s * h, *at[argnum + 1 :]) for s in (1, -1))
        return (high - low) / (2 * h)

    def error(self, got, exact, least=0):
        """Error relative to what is exact, or to `least` if that is larger; NaN counts as inf."""
        got, exact = self(got), self(exact)
        if got == exact:
            return 0.0
        scale = max(abs(exact), self(least))
        if not (self.mp.isfinite(got) and self.mp.isfinite(exact)) or scale == 0:
            return np.inf
        return float(abs(got - exact) / scale)


@pytest.fixture(scope="session")
def exact():
    return Exact()


@pytest.fixture(params=["numpy", "jax"])
def kind(request):
    """Makes arrays of the kind under test, in double precision without the global switch."""
    if request.param == "numpy":
        yield np.asarray
    else:
        with jax.enable_x64(True):
            yield jax.numpy.asarray


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield
