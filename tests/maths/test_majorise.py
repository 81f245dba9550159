import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from mtbayes.maths.majorise import refit_weights
from mtbayes.maths.tlog import log_t_from_log


@pytest.mark.parametrize("t", [0.3, 0.7])
@pytest.mark.parametrize("m", [1, 3])
def test_refits_with_these_weights_never_raise_the_loss(m, t):
    rng = np.random.default_rng(10 * m)
    x = rng.normal(size=(300, 4))
    y = (x @ [2.0, -1.0, 0.5, 0.0] + 0.3 * x[:, 0] * x[:, 1] > 0).astype(int)
    y[:60] = 1 - y[:60]

    def log_lik(theta):
        return np.log(expit((2 * y - 1) * (theta[:, :-1] @ x.T + theta[:, -1:])))

    def loss(theta):  # scikit-learn's penalty at C = 1 belongs to it; intercepts have none
        mean = np.log(np.exp(log_lik(theta)).mean(axis=0))
        return -np.sum(log_t_from_log(mean, t)) + 0.5 * np.sum(theta[:, :-1] ** 2)

    theta = rng.normal(size=(m, 5))
    losses = [loss(theta)]
    for _ in range(30):
        weights = refit_weights(log_lik(theta), t)
        fits = [LogisticRegression(tol=1e-8, max_iter=1000).fit(x, y, w) for w in weights]
        theta = np.array([[*f.coef_[0], f.intercept_[0]] for f in fits])
        losses.append(loss(theta))
    falls = -np.diff(losses)
    assert np.all(falls >= -1e-4)  # as exact as scikit-learn's fits
    assert falls[0] > 1  # the first is no small one


def test_the_bound_touches_the_loss_at_the_current_fit_and_lies_above_it():
    rng = np.random.default_rng(0)
    now, other = np.log(rng.uniform(0.01, 1, (2, 3, 50)))
    for t in (0.0, 0.4, 1.0):
        weights = refit_weights(now, t)

        def loss(logs, t=t):
            return -np.sum(log_t_from_log(np.log(np.exp(logs).mean(axis=0)), t))

        bound = loss(now) - np.sum(weights * (other - now))
        assert bound >= loss(other) - 1e-9
        step = 1e-6 * rng.normal(size=now.shape)
        slope = loss(now + step) - loss(now)
        assert slope == pytest.approx(-np.sum(weights * step), abs=1e-9)
