"""Many fits at once: what a sweep and a path are given."""

import jax
import numpy as np
import pytest

from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.likelihoods import Gaussian
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Particles
from mtbayes.solve import fit, path, sweep

X = np.linspace(-1, 1, 20)[:, None]
NET = Model(mlp((1, 3, 1)), Gaussian(0.3))
ONE = Criterion(2, 0.8)


def swept(criteria=(ONE,), keys=(0,), **options):
    return sweep(NET, X, X[:, 0], criteria, keys=keys, epochs=1, **options)


def walked(criteria=(ONE,), key=0, **options):
    return path(NET, X, X[:, 0], criteria, key=key, epochs=1, **options)


@pytest.fixture
def untrained(monkeypatch):
    """Fits fail."""
    for name in ("fit", "_side_by_side"):
        monkeypatch.setattr(f"mtbayes.solve.sweeps.{name}", lambda *_, **__: pytest.fail("a fit"))


def test_a_whole_number_is_as_good_as_its_key():
    key = jax.random.key(3)
    pairs = [
        (fit(NET, X, X[:, 0], ONE, key=k, epochs=1).state.mean for k in (3, key)),
        (swept(keys=keys)[0][0].state.mean for keys in ([3], [key])),
        (walked(key=k)[0].state.mean for k in (3, key)),
    ]
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda: swept(keys=3), "keys must be a list, got 3. Try keys="),
        (lambda: swept(keys=jax.random.key(0)), "keys must be a list, got "),
        (lambda: swept(keys=[]), "keys must hold at least one entry, got none. Try keys="),
        (lambda: swept(keys=["a"]), "each of keys must be a whole number or one JAX key, got 'a'"),
        (lambda: walked(key="a"), "key must be a whole number or one JAX key, got 'a'"),
        (lambda: swept(ONE), "criteria must be a list, got Criterion(.*)"),
        (lambda: walked(ONE), "criteria must be a list, got Criterion(.*)"),
        (lambda: swept([]), "criteria must hold at least one entry, got none. Try"),
        (lambda: walked([]), "criteria must hold at least one entry, got none. Try"),
        (lambda: walked([ONE, 0.5]), "criterion must have a method rows, got 0.5"),
        (
            lambda: swept([ONE, Criterion(2, 0.7), Criterion(1, 0.7, 50), Criterion(1, 0.6)]),
            r"got Criterion\(m=2, t=0.8, beta=1.0, .*\), Criterion\(m=1, t=0.7, beta=50, "
            r"[^()]*\)\. Sweep each kind apart",
        ),
        (lambda: walked(start=Particles(1)), "option must be one of .*, got 'start'"),
        (lambda: walked(checkpoint="p"), "checkpoint must be left out, .* got 'p'. Call fit"),
        (lambda: swept(checkpoint="p"), "checkpoint must be left out, .* got 'p'. Call fit"),
    ],
)
def test_what_cannot_be_run_is_told_before_a_fit(run, words, untrained):
    with pytest.raises(InvalidInput, match=words):
        run()


@pytest.mark.parametrize("key", ["a", None, 1.5])
def test_a_fit_tells_what_is_no_key(key):
    with pytest.raises(
        InvalidInput, match=f"key must be a whole number or one JAX key, got {key!r}"
    ):
        fit(NET, X, X[:, 0], ONE, key=key)
