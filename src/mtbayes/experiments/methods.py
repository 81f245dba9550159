"""Our method and its rivals by name: each is a posterior and a criterion of one engine.

All train the same network on the same rows for as many epochs. `m` is the size of an ensemble.
`trust` sets the regulariser, alike for all: its weight beside the mean loss is 1/(n·trust), which
for J_t^m is beta = m·trust. Bayes has trust 1, or it would not be Bayes; a deep ensemble has no
regulariser, as its authors have it. The orders of the β- and γ-divergence are 1-t: then each loss
weighs a row by p^(1-t), and one t means as much for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from mtbayes.criteria import Criterion, Objective
from mtbayes.posteriors import Particles, Posterior, mean_field
from mtbayes.rivals import BetaDivergence, GammaDivergence, PacSquared


class Method(NamedTuple):
    """A way to train.

    posterior: the family, for an ensemble of m
    criterion: from (m, t, trust)
    swept: whether it has a t
    """

    posterior: Callable[[int], Posterior]
    criterion: Callable[[int, float, float], Objective]
    swept: bool = False


def _one(_m: int) -> Posterior:
    return mean_field()


ROBUST, GIBBS, DEEP = "robust ensemble", "robust Gibbs", "deep ensemble"
MODES = "robust modes"
"""J_t^1 of each of m points on its own: a deep ensemble by a robust loss."""

METHODS = {
    ROBUST: Method(_one, lambda m, t, trust: Criterion(m, t, m * trust), swept=True),
    GIBBS: Method(_one, lambda m, t, trust: Criterion(1, t, trust), swept=True),
    DEEP: Method(Particles, lambda m, t, trust: Criterion(1, 1.0, math.inf)),
    MODES: Method(Particles, lambda m, t, trust: Criterion(1, t, math.inf), swept=True),
    "Bayes": Method(_one, lambda m, t, trust: Criterion(1, 1.0, 1.0)),
    "PAC^m": Method(_one, lambda m, t, trust: Criterion(m, 1.0, m * trust)),
    "PAC²": Method(_one, lambda m, t, trust: PacSquared(2, trust)),
    "β-divergence": Method(_one, lambda m, t, trust: BetaDivergence(1 - t, 1, trust), swept=True),
    "γ-divergence": Method(_one, lambda m, t, trust: GammaDivergence(1 - t, 1, trust), swept=True),
    "Rényi": Method(_one, lambda m, t, trust: Criterion(1, 1.0, trust, t_p=0.5)),
}
"""Every method by the name that its rows carry."""
