"""The mathematics of the paper: pure arrays in, arrays out."""

from mtbayes.maths.divergences import (
    escort,
    gaussian_kl_divergence,
    gaussian_renyi_divergence,
    kl_divergence,
    renyi_divergence,
    renyi_entropy,
    tsallis_divergence,
    tsallis_entropy,
)
from mtbayes.maths.expectation import expected_log_t
from mtbayes.maths.tlog import exp_t, log_exp_t, log_t, log_t_from_log

__all__ = [
    "escort",
    "exp_t",
    "expected_log_t",
    "gaussian_kl_divergence",
    "gaussian_renyi_divergence",
    "kl_divergence",
    "log_exp_t",
    "log_t",
    "log_t_from_log",
    "renyi_divergence",
    "renyi_entropy",
    "tsallis_divergence",
    "tsallis_entropy",
]
