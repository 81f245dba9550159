"""Weights by which any learner of the log loss lowers the (m,t)-robust loss: majorise, minimise."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from mtbayes.types import Array, FloatArray


def refit_weights(log_lik: Array, t: float) -> FloatArray:
    """What each row weighs when each of m members is fitted anew by the log loss, [m, n].

    log_lik: log p_j(i) of m members at the current fit, [m, n]
    t: of the loss, in [0, 1]

    -log_t(e^l) is concave in l = log p̄_i, the log of the members' mean, so that its tangent at the
    current fit lies above it; and log p̄_i is bounded from below by its members (Jensen). So

        Σ_i -log_t p̄_i ≤ const - Σ_i w_i Σ_j r_ij log p_j(i),  w_i = p̄_i^(1-t),

    with r_ij = p_j(i)/Σ_k p_k(i), and with equality at the current fit: members that lower the
    right side lower the left. The weights are w_i · r_ij.

    >>> refit_weights(np.log([[0.9, 0.1]]), 0.5).round(3)  # a row that fits badly loses its pull
    array([[0.949, 0.316]])
    """
    logs = np.asarray(log_lik, float)
    mean = logsumexp(logs, axis=0) - np.log(len(logs))
    return np.exp((1 - t) * mean) * softmax(logs, axis=0)
