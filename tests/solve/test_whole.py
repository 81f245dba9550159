"""Points by all rows at once."""

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mtbayes.criteria import Criterion
from mtbayes.likelihoods import Categorical
from mtbayes.models import Model
from mtbayes.networks import mlp
from mtbayes.posteriors import Particles, prior
from mtbayes.solve.gradient import fit
from mtbayes.solve.problem import Problem
from mtbayes.solve.whole import descend
from mtbayes.types import Rows

KEY = jax.random.key(0)


def rows_of(n=300, wrong=0):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    y = (x @ [1.5, -1.0, 0.0] + 0.7 * rng.logistic(size=n) > 0).astype(int)
    y[:wrong] = 1 - y[:wrong]
    return x, y


def problem_of(x, y, t, weight=None, start=None, beta=1.0):
    model = Model(mlp((3, 2)), Categorical(2))
    criterion = Criterion(m=1, t=t, beta=beta, joint=False)
    posterior = Particles(2)
    return Problem(model, criterion, Rows(x, y, weight), posterior, prior(0.0, 1.0), start=start)


def test_logistic_regression_is_found():
    """Two classes with a prior N(0, 1) on both weights: scikit-learn's C is then 2, but for the
    intercept, which it leaves free: the prior hardly moves that of balanced classes."""
    x, y = rows_of()
    state = descend(problem_of(x, y, 1.0)).state
    theirs = LogisticRegression(C=2.0, tol=1e-8).fit(x, y)
    for point in np.asarray(state.mean):
        (layer,) = problem_of(x, y, 1.0).model.network.unravel(point)
        between = np.asarray(layer.weight[:, 1] - layer.weight[:, 0])
        np.testing.assert_allclose(between, theirs.coef_[0], atol=0.01)


@pytest.mark.parametrize("t", [1.0, 0.5])
def test_no_lower_j_is_found_by_batches(t):
    x, y = rows_of(wrong=40)
    problem = problem_of(x, y, t)
    whole = descend(problem)
    by_batches = fit(
        problem.model, x, y, problem.criterion, key=KEY, posterior=problem.posterior,
        prior=problem.prior, epochs=100, learning_rate=0.02, start=whole.state,
    )  # fmt: skip
    again = descend(problem_of(x, y, t, start=by_batches.state))
    assert again.trace[-1, 0] == pytest.approx(whole.trace[-1, 0], abs=1e-4)
    loss, data, divergence = whole.trace[-1]
    assert loss == pytest.approx(data + divergence / len(y), rel=1e-5)


def test_each_mode_has_its_own_rows():
    """A mode whose rows of one half weigh nothing ends where it would without them."""
    x, y = rows_of()
    half = np.arange(len(y)) % 2 == 0
    weight = np.stack([half, ~half], axis=1).astype(float)
    both = descend(problem_of(x, y, 1.0, weight)).state.mean
    for mode, some in zip(np.asarray(both), (half, ~half), strict=True):
        alone = descend(problem_of(x[some], y[some], 1.0)).state.mean
        np.testing.assert_allclose(mode, alone[0], atol=5e-3)


def test_words_tell_that_it_ended():
    solution = descend(problem_of(*rows_of(), 1.0))
    assert solution.status.converged
    assert solution.status.sentence.startswith("Went downhill for")
