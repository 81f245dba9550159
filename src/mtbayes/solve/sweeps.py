"""Many fits as one program: values of t and seeds side by side, or a path of t with warm starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes import _check
from mtbayes.criteria import Objective
from mtbayes.data.sources import is_streamed
from mtbayes.errors import InvalidInput
from mtbayes.maths import draws
from mtbayes.models import LogLik
from mtbayes.solve.checks import listed_criteria, listed_keys
from mtbayes.solve.gradient import Training, finished, fit
from mtbayes.solve.problem import Held, Problem
from mtbayes.solve.program import Settings, chunk
from mtbayes.types import Array, Rows, Solution

# Fits that run side by side: enough to fill the machine on small networks, bounded in memory.
_WIDTH = 12
_OPTIONS = ["posterior", "prior", "weight", "optimiser", "learning_rate", "epochs", "batch_size"]
_ALSO_ALONG = ["shuffle", "mesh", "held_out", "patience", "callback"]  # a path: its fits are calls


def sweep(
    model: LogLik,
    x: Any,
    y: Any,
    criteria: Sequence[Objective],
    *,
    keys: Array | Sequence[Array | int],
    width: int = _WIDTH,
    **options: Any,
) -> list[list[Solution]]:
    """`fit` for every criterion and every key, compiled once: result[i][j] for criterion i, key j.

    criteria: alike but for the numbers that a program takes as values, t and beta
    keys: one JAX key, or an int, for each seed
    width: fits held in memory at a time
    options: posterior, prior, weight, optimiser, learning_rate, epochs and batch_size, as for `fit`

    >>> from mtbayes.criteria import Criterion
    >>> from mtbayes.likelihoods import Gaussian
    >>> from mtbayes.models import Model
    >>> from mtbayes.networks import mlp
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> model = Model(mlp((1, 4, 1)), Gaussian(0.1))
    >>> criteria = [Criterion(m=2, t=t) for t in (1.0, 0.5)]
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> table = sweep(model, x, x[:, 0], criteria, keys=keys, epochs=2)
    >>> len(table), len(table[0])
    (2, 3)
    """
    _check.count(width, "width", "It bounds memory; 12 is the default.")
    _check_options(options, _OPTIONS)
    criteria, seeds = listed_criteria(criteria), listed_keys(keys)
    kinds: dict[Objective, Objective] = {}
    for criterion in criteria:
        kinds.setdefault(criterion.template(), criterion)
    if len(kinds) > 1:
        raise InvalidInput(
            "criteria must differ in t and beta alone, so that one program serves all, got "
            f"{', '.join(map(repr, kinds.values()))}. Sweep each kind apart."
        )
    if is_streamed(x):
        raise InvalidInput("x must be an array in memory for a sweep. Call `fit` for each t.")
    rows = Rows(Held.of(model, x, y), None, options.pop("weight", None))
    given = {name: value for name, value in options.items() if value is not None}
    problem = Problem(model, criteria[0], rows, **given)
    pairs = [(c, key) for c in criteria for key in seeds]
    solutions: list[Solution] = []
    for begin in range(0, len(pairs), width):
        group = pairs[begin : begin + width]
        solutions += _side_by_side([Training(replace(problem, criterion=c), k) for c, k in group])
    return [solutions[i : i + len(seeds)] for i in range(0, len(solutions), len(seeds))]


def _check_options(options: dict[str, Any], allowed: list[str]) -> None:
    if "checkpoint" in options:
        raise InvalidInput(
            "checkpoint must be left out, for sweeps and paths keep none, got "
            f"{options['checkpoint']!r}. Call fit(..., checkpoint=...) for each criterion and key, "
            "with a file for each."
        )
    for name in options:
        _check.known("option", name, allowed)


def _side_by_side(group: list[Training]) -> list[Solution]:
    first = group[0]
    state = _stacked([g.start for g in group])
    hyper = _stacked([g.hyper for g in group])
    run = _program(first.settings)
    traces: list[Any] = []
    ends = np.full(len(group), first.schedule.chunks)
    feeds: list[Any] = [g.feed for g in group]
    for i in range(first.schedule.chunks):
        orders, counts = zip(*(feed.ordered(i) for feed in feeds), strict=True)
        key = jnp.stack([first.schedule.key(g.member_key, i) for g in group])
        new, terms, sound = run(state, feeds[0].rows, np.stack(orders), counts[0], key, hyper)
        ends = np.where(np.asarray(sound), ends, np.minimum(ends, i))
        alive = jnp.asarray(ends > i)
        state = jax.tree.map(partial(_where, alive), new, state)
        traces.append(np.stack(terms, axis=-1))
    table = np.stack(traces, axis=1)
    solutions = []
    for i, (end, rows) in enumerate(zip(ends.tolist(), table, strict=True)):
        q = jax.tree.map(lambda v, i=i: v[i], state.posterior)
        whole, epochs = end == first.schedule.chunks, first.schedule.epochs_after(end)
        solutions.append(finished(first, q, rows[:end], epochs, sound=whole))
    return solutions


def _where(alive: Array, new: Array, old: Array) -> Array:
    """The new value of fits that are sound, the last good one of the others."""
    return jnp.where(alive.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def _stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


@lru_cache(maxsize=64)
def _program(settings: Settings) -> Any:
    return jax.jit(jax.vmap(partial(chunk, settings), in_axes=(0, None, 0, None, 0, 0)))


def path(
    model: LogLik,
    x: Any,
    y: Any,
    criteria: Sequence[Objective],
    *,
    key: Array | int,
    epochs: int = 20,
    share: float = 0.2,
    **options: Any,
) -> list[Solution]:
    """`fit` along a path of criteria, each starting from the one before.

    criteria: usually t from 1 downwards
    key: a JAX key, or an int
    epochs: of the first; each later one takes `share` of them, so that eleven cost three fits
    options: as for `fit`, without start and checkpoint

    >>> from mtbayes.criteria import Criterion
    >>> from mtbayes.likelihoods import Gaussian
    >>> from mtbayes.models import Model
    >>> from mtbayes.networks import mlp
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> model = Model(mlp((1, 4, 1)), Gaussian(0.1))
    >>> criteria = [Criterion(m=2, t=t) for t in (1.0, 0.8, 0.6)]
    >>> [s.status.steps for s in path(model, x, x[:, 0], criteria, key=jax.random.key(0))]
    [20, 4, 4]
    """
    _check.fraction(share, "share", "0.2 makes a path of 11 cost 3 fits.")
    _check_options(options, [*_OPTIONS, *_ALSO_ALONG])
    solutions: list[Solution] = []
    for i, criterion in enumerate(listed_criteria(criteria)):
        start = solutions[-1].state if solutions else None
        length = epochs if i == 0 else max(1, round(share * epochs))
        solutions.append(
            fit(
                model,
                x,
                y,
                criterion,
                key=draws.child(key, i),
                epochs=length,
                start=start,
                **options,
            )
        )
    return solutions
