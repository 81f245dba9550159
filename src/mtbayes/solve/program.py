"""The compiled programs of a fit: the start, a chunk of steps, and the loss of each row.

What makes a step cheap: all parameters of Gaussians in one flat vector, and of points map by map
(`mtbayes.members.Apart`); one slice of random numbers a step; layers drawn row by row where that is
cheaper (`mtbayes.members`); and a pool of random numbers for each chunk, read at random places.
A slice of a pool of independent normals is itself a vector of independent normals, so that each
step's gradient, taken by itself, is unbiased; it is not independent of earlier steps that have read
the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding, PartitionSpec

from mtbayes.criteria import Objective
from mtbayes.members import Apart, Linear, Plan, Points, plan
from mtbayes.models import LogLik
from mtbayes.posteriors import Posterior, Prior, grouped, members_of
from mtbayes.types import Array, Rows

_POOL = 2**21
_USES = 8  # of each number in a chunk, where drawing them once would take long
_CHEAP = 2**18  # numbers that are drawn in no time
_EVALUATION_MEMBERS = 50
_EVALUATION_ROWS = 1024
_ADAM = optax.scale_by_adam()


class Terms(NamedTuple):
    """J and its parts: loss = data + weight · divergence."""

    loss: Array
    data: Array
    divergence: Array


class Hyper(NamedTuple):
    """Traced numbers: a change of theirs needs no new program."""

    numbers: tuple[Array, ...]
    strength: Array
    rate: Array
    batches: Array
    """Steps an epoch."""
    steps: Array
    """Of the whole fit."""
    prior: Prior


class State(NamedTuple):
    """All that a step changes."""

    posterior: Any
    optimiser: Any
    step: Array


class Settings(NamedTuple):
    """What a compiled program depends on, beside shapes."""

    model: LogLik
    posterior: Posterior
    criterion: Objective
    optimiser: optax.GradientTransformation | None
    batch_size: int
    mesh: Any = None

    @property
    def members(self) -> int:
        """Members a step: m of all components together, at least one of each; or m of each."""
        return members_of(self.criterion, self.posterior)

    @property
    def regroups(self) -> bool:
        """Whether each step has new groups of m components."""
        criterion = self.criterion
        return criterion.power is None and criterion.joint and self.members > criterion.m > 1

    @property
    def plan(self) -> Plan:
        """How θ is drawn."""
        k = self.posterior.components
        return plan(self.model.linears, self.model.size, k, self.members, self.batch_size)


def estimate(
    settings: Settings, state: Any, rows: Rows, normals: Array, key: Array, hyper: Hyper
) -> Terms:
    """J estimated, without bias, from one minibatch out of `hyper.batches`.

    The mean over the minibatches of an epoch is J on all rows, since each estimate is
    batches · Σ_i weight_i R_i with weights that sum to 1 over all rows; padding weighs 0.
    """
    members = settings.posterior.members(state, normals, settings.plan, settings.members)
    criterion, model = settings.criterion, settings.model
    log_lik = _split(settings, model.log_lik(members, rows.x, rows.y))
    integral = None
    if criterion.power is not None:
        integral = model.log_power_integral(members, rows.x, criterion.power)
    elif settings.regroups:
        log_lik = jax.random.permutation(key, log_lik)
    numbers = hyper.numbers
    if rows.trusted is not None:  # a target that is certain is learned as at t = 1
        numbers = (jnp.where(rows.trusted, 1.0, numbers[0]), *numbers[1:])
    if rows.weight.ndim == 1:
        data = hyper.batches * jnp.sum(rows.weight * criterion.rows(log_lik, integral, *numbers))
    else:  # each mode has its own weights of the rows; its members follow each other
        own = log_lik.reshape(settings.posterior.components, -1, log_lik.shape[1])
        losses = jax.vmap(lambda some: criterion.rows(some, None, *numbers))(own)
        data = hyper.batches * jnp.mean(jnp.sum(rows.weight.T * losses, axis=1))
    divergence = settings.posterior.divergence(state, hyper.prior, criterion.t_p)
    return Terms(data + hyper.strength * divergence, data, divergence)


def begun(settings: Settings, state: Any) -> State:
    """The state before the first step from parameters of the posterior."""
    if settings.optimiser is None:  # Adam's moments begin at 0, which needs no program
        moments = jax.tree.map(
            lambda v: np.zeros(v.shape, v.dtype), jax.eval_shape(_ADAM.init, state)
        )
        return State(state, moments, np.zeros((), np.int32))
    return State(state, settings.optimiser.init(state), jnp.zeros((), jnp.int32))


@lru_cache(maxsize=64)
def divergence(settings: Settings) -> Callable[[Any, Prior], Array]:
    """The divergence of a state from the prior, compiled."""
    return jax.jit(lambda s, prior: settings.posterior.divergence(s, prior, settings.criterion.t_p))


@lru_cache(maxsize=64)
def program(settings: Settings) -> Callable[..., tuple[State, Terms, Array]]:
    """The compiled chunk where all rows are on the device."""
    return jax.jit(partial(chunk, settings))


@lru_cache(maxsize=64)
def streamed(settings: Settings) -> Callable[..., tuple[State, Terms, Array]]:
    """The compiled chunk where batches come one by one, split over the devices of a mesh."""

    def run(
        state: State, batches: Rows, count: Array, key: Array, hyper: Hyper
    ) -> tuple[State, Terms, Array]:
        key = jax.random.wrap_key_data(key)
        kind = batches.weight.dtype
        return _steps(
            settings, state, batches, count, lambda b: b._replace(x=b.x.astype(kind)), key, hyper
        )

    everywhere = None if settings.mesh is None else NamedSharding(settings.mesh, PartitionSpec())
    return jax.jit(run, out_shardings=everywhere)


def chunk(
    settings: Settings,
    state: State,
    rows: Rows,
    order: Array,
    count: Array,
    key: Array,
    hyper: Hyper,
) -> tuple[State, Terms, Array]:
    """The first steps through `order`[steps, batch]: new state, mean terms, whether it is finite.

    count: how many steps; what follows in `order` makes its shape one of a few
    """

    def batch(picked: Array) -> Rows:
        padding = jnp.expand_dims(picked < 0, tuple(range(1, rows.weight.ndim)))
        weight = jnp.where(padding, 0.0, rows.weight[picked])
        trusted = None if rows.trusted is None else rows.trusted[picked]
        return Rows(rows.x[picked], rows.y[picked], weight, trusted)

    return _steps(settings, state, order, count, batch, key, hyper)


def _steps(
    settings: Settings,
    state: State,
    inputs: Any,
    count: Any,
    batch: Callable[[Any], Rows],
    key: Array,
    hyper: Hyper,
) -> tuple[State, Terms, Array]:
    """A step for each of the first `count` of `inputs`, of which `batch` makes its rows."""
    room = few_steps(len(jax.tree.leaves(inputs)[0]))
    pool, places = _normals(settings, room, key, state)
    rule = settings.optimiser if settings.optimiser is not None else _ADAM
    linears = settings.model.linears
    apart = settings.optimiser is None and settings.posterior.cut
    if apart:  # an optimiser of one's own may ask what belongs together
        state, hyper = _apart(state, linears), hyper._replace(prior=_apart(hyper.prior, linears))

    def step(i: Array, so_far: tuple[State, Terms]) -> tuple[State, Terms]:
        state, trace = so_far
        normals = (
            jax.lax.dynamic_slice(pool, (places[i],), (settings.plan.size,)) if len(pool) else pool
        )
        rows = batch(jax.tree.map(lambda v: v[i], inputs))
        # A key that nobody asks for costs a compiler time all the same.
        grouping = jax.random.fold_in(key, state.step) if settings.regroups else key

        def loss(posterior: Any) -> tuple[Array, Terms]:
            terms = estimate(settings, posterior, rows, normals, grouping, hyper)
            return terms.loss, terms

        gradient, terms = jax.grad(loss, has_aux=True)(state.posterior)
        change, optimiser = rule.update(gradient, state.optimiser, state.posterior)
        if settings.optimiser is None:
            rate = 0.5 * hyper.rate * (1 + jnp.cos(jnp.pi * state.step / hyper.steps))
            change = jax.tree.map(lambda c: -rate * c, change)
        moved = optax.apply_updates(state.posterior, change)
        trace = jax.tree.map(lambda all_, one: all_.at[i].set(one), trace, terms)
        return State(moved, optimiser, state.step + 1), trace

    none = Terms(*(jnp.zeros(room, hyper.rate.dtype),) * 3)
    state, trace = jax.lax.fori_loop(0, count, step, (state, none))
    state = _together(state) if apart else state
    mean = Terms(*(jnp.sum(v) / count for v in trace))
    sound = jnp.isfinite(mean.loss) & jnp.all(
        jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(state.posterior)])
    )
    return state, mean, sound


def _apart(tree: Any, linears: tuple[Linear, ...]) -> Any:
    """The vectors θ[..., P] of a tree, map by map; numbers stay."""
    return jax.tree.map(lambda v: Apart.of(v, linears) if jnp.ndim(v) else v, tree)


def _together(tree: Any) -> Any:
    return jax.tree.map(
        lambda v: v.theta() if isinstance(v, Apart) else v,
        tree,
        is_leaf=lambda v: isinstance(v, Apart),
    )


def few_steps(steps: int) -> int:
    """Room for so many steps: 4, 5, 6 or 7 times a power of 2, at least 16.

    >>> [few_steps(n) for n in (1, 20, 81, 500)]
    [16, 20, 96, 512]
    """
    unit = 1 << max(2, (steps - 1).bit_length() - 3)
    return max(16, unit * -(-steps // unit))


def _split(settings: Settings, log_lik: Array) -> Array:
    """Log likelihoods [S, n] over a mesh: rows along its first axis, members along another."""
    if settings.mesh is None:
        return log_lik
    rows, *members = settings.mesh.axis_names
    by = PartitionSpec(members[0] if members else None, rows)
    return jax.lax.with_sharding_constraint(log_lik, NamedSharding(settings.mesh, by))


def _normals(settings: Settings, steps: int, key: Array, state: State) -> tuple[Array, Array]:
    """A pool of standard normals, and where in it each step reads."""
    dtype = jax.tree.leaves(state.posterior)[0].dtype
    each = settings.plan.size if settings.posterior.drawn else 0
    if not each:
        return jnp.zeros(0, dtype), jnp.zeros(steps, int)
    size = min(steps * each, max(4 * each, _CHEAP, min(_POOL, steps * each // _USES)))
    pool = jax.random.normal(jax.random.fold_in(key, 0), (size,), dtype)
    if size == steps * each:
        return pool, jnp.arange(steps) * each
    places = jax.random.randint(jax.random.fold_in(key, 1), (steps,), 0, size - each + 1)
    return pool, places


def row_losses(
    settings: Settings,
    state: Any,
    x: Any,
    y: Any,
    key: Array,
    numbers: tuple[Any, ...],
    members: int = _EVALUATION_MEMBERS,
) -> Any:
    """The criterion's loss of each row, [n], from at least `members` weights shared by all rows."""
    members = settings.members * -(-members // settings.members)
    theta = grouped(settings.criterion, settings.posterior, key, state, members)
    losses = _losses(settings)
    parts = []
    for begin in range(0, len(x), _EVALUATION_ROWS):
        picked = np.arange(begin, begin + _EVALUATION_ROWS) % len(x)  # one shape, one compilation
        part = np.asarray(losses(theta, x[picked], y[picked], numbers))
        parts.append(part[: len(x) - begin])
    return np.concatenate(parts)


@lru_cache(maxsize=64)
def _losses(settings: Settings) -> Callable[..., Array]:
    def losses(theta: Array, x: Array, y: Array, numbers: tuple[Array, ...]) -> Array:
        members, model, power = Points(theta), settings.model, settings.criterion.power
        integral = None if power is None else model.log_power_integral(members, x, power)
        return settings.criterion.rows(model.log_lik(members, x, y), integral, *numbers)

    return jax.jit(losses)
