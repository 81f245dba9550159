"""Minimise J over a family of posteriors by stochastic gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mtbayes import _check
from mtbayes.criteria import Objective
from mtbayes.draws import Points
from mtbayes.errors import InvalidInput
from mtbayes.models import LogLik
from mtbayes.posteriors import Posterior, Prior, mean_field
from mtbayes.posteriors import prior as gaussian_prior
from mtbayes.solve.checkpoint import Checkpoint, describe
from mtbayes.solve.program import Hyper, Rows, Settings, State, Terms, program, row_losses, starter
from mtbayes.types import Array, Solution, Status

# Steps in a chunk of several epochs, about: long enough to pay for the call, short enough to watch.
_CHUNK_STEPS = 500


class Progress(NamedTuple):
    """What a callback is told after each chunk of epochs."""

    epoch: int
    epochs: int
    terms: Terms
    held_out: float | None


def fit(
    model: LogLik,
    x: Any,
    y: Any,
    criterion: Objective,
    *,
    key: Array,
    posterior: Posterior | None = None,
    prior: Prior | None = None,
    weight: Any = None,
    optimiser: optax.GradientTransformation | None = None,
    learning_rate: float = 0.01,
    epochs: int = 20,
    batch_size: int = 128,
    start: Any = None,
    held_out: tuple[Any, Any] | None = None,
    patience: int = 5,
    checkpoint: str | Path | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> Solution:
    """Minimise J over a posterior family by stochastic gradients.

    model: a `Model` or `CustomModel`; x, y: rows [n, ...] and targets [n]
    criterion: `Criterion(m, t, beta, t_p)` or a rival's
    key: a JAX key, or an int; the same key gives the same result
    posterior: `mean_field()` by default, or a Mixture or Particles
    prior: `prior(mean, std)`, N(0, 1) by default
    weight: [n], how often each row counts
    optimiser: any optax transformation, with its own rate; by default Adam
    learning_rate: where the default optimiser's rate starts; it falls to 0 along a cosine
    epochs: passes over the rows; batch_size: rows a step
    start: a state of the posterior to start from
    held_out: (x, y) whose loss is looked at after each chunk of epochs; the best state is returned
    patience: training stops when that many looks brought nothing better; a fit has twenty looks or
        more where its epochs allow
    checkpoint: a file, written after each chunk; a fit that was killed goes on from it and ends in
        the same parameters, bit for bit
    callback: told `Progress` after each chunk

    Returns a Solution: `state` is the posterior's, `trace` has a row (J, data term, divergence)
    for each chunk of epochs.

    >>> from mtbayes.criteria import Criterion
    >>> from mtbayes.likelihoods import Gaussian
    >>> from mtbayes.models import Model
    >>> from mtbayes.networks import mlp
    >>> x = np.linspace(-1, 1, 200)[:, None]
    >>> model = Model(mlp((1, 8, 1)), Gaussian(0.1))
    >>> solution = fit(model, x, x[:, 0] ** 2, Criterion(m=5, t=0.9), key=jax.random.key(0))
    >>> print(solution.status)
    Trained for 20 epochs.
    """
    training = Training(
        model,
        criterion,
        x,
        y,
        key=key,
        posterior=posterior,
        prior=prior,
        weight=weight,
        optimiser=optimiser,
        learning_rate=learning_rate,
        epochs=epochs,
        batch_size=batch_size,
        start=start,
    )
    watch = _HeldOut(training, held_out, patience) if held_out is not None else None
    saved = None
    if checkpoint is not None:
        looks = (
            {"held_out or patience": describe((watch.x, watch.y, jnp.asarray(patience)))}
            if watch
            else {}
        )
        saved = Checkpoint(checkpoint, training.fingerprint() | looks)
    return run(training, watch, saved, callback)


class Training:
    """One fit: its data on the device, its compiled program, its order of rows."""

    def __init__(
        self,
        model: LogLik,
        criterion: Objective,
        x: Any,
        y: Any,
        *,
        key: Array,
        posterior: Posterior | None = None,
        prior: Prior | None = None,
        weight: Any = None,
        optimiser: optax.GradientTransformation | None = None,
        learning_rate: float = 0.01,
        epochs: int = 20,
        batch_size: int = 128,
        start: Any = None,
        chunk: int | None = None,
    ) -> None:
        posterior = mean_field() if posterior is None else posterior
        prior = gaussian_prior() if prior is None else prior
        _check_parts(model, criterion, posterior, prior)
        key = jax.random.key(key) if isinstance(key, int) else key
        _check.count(epochs, "epochs", "20 is the default.")
        _check.count(batch_size, "batch_size", "128 is the default.")
        _check.positive(learning_rate, "learning_rate", "0.01 is the default.")
        x, y = checked_rows(model, x, y)
        n = len(x)
        weights = _check.row_weights(weight, n)
        _check_groups(criterion, posterior)
        self.counted = np.flatnonzero(weights)
        size = min(batch_size, n)
        batches = -(-len(self.counted) // size)
        self.settings = Settings(model, posterior, criterion.template(), optimiser, size, batches)
        self.rows = Rows(
            jnp.asarray(x), jnp.asarray(y), jnp.asarray(weights / weights.sum(), float)
        )
        self.epochs, self.criterion = epochs, criterion
        # Whole epochs, about 500 steps, and at least twenty chunks to watch where epochs allow.
        most = min(_CHUNK_STEPS // batches, epochs // 20)
        self.chunk = _divisor(epochs, max(1, most)) if chunk is None else chunk
        self.hyper = Hyper(
            tuple(jnp.asarray(v, float) for v in criterion.numbers()),
            jnp.asarray(criterion.regulariser_weight(float(weights.sum())), float),
            jnp.asarray(learning_rate, float),
            jnp.asarray(epochs * batches, float),
            prior,
        )
        keys = jax.random.split(key, 4)
        self.noise_key, self.held_out_key = keys[1], keys[3]
        self.shuffle = np.asarray(jax.random.key_data(keys[2])).tolist()
        self.start, divergence = starter(self.settings)(keys[0], start, prior)
        first = float(divergence)
        if not math.isfinite(first):
            raise InvalidInput(
                f"t_p must give a finite divergence from the prior at the start, got {first} at "
                f"t_p = {criterion.t_p:g}. Above order 1 the prior must be wide enough; raise its "
                "std or lower t_p."
            )

    def fingerprint(self) -> dict[str, Any]:
        """What a checkpoint must agree with, by name."""
        return {
            "model": describe(self.settings.model),
            "posterior": repr(self.settings.posterior),
            "criterion": repr(self.criterion),
            "optimiser": describe(self._first_move()),
            "epochs": self.epochs,
            "batch_size": self.settings.batch_size,
            "data, prior, key or rates": describe((self.rows, self.hyper, self.noise_key)),
            "start or log_lik": describe((self.start.posterior, self._first_log_lik())),
        }

    def _first_move(self) -> Any:
        """What the optimiser makes of a gradient of ones: two optimisers hardly agree on it."""
        rule, state = self.settings.optimiser, self.start
        if rule is None:
            return jnp.zeros(1)
        ones = jax.tree.map(jnp.ones_like, state.posterior)
        return rule.update(ones, state.optimiser, state.posterior)

    def _first_log_lik(self) -> Array:
        """log_lik of a few rows at the start: a function has no other fingerprint."""
        few, model = slice(0, 8), self.settings.model
        theta = Points(self.start.posterior.mean)
        return model.log_lik(theta, self.rows.x[few], self.rows.y[few])

    def order(self, epoch: int) -> Array:
        """Row numbers for a chunk of epochs, [steps, batch]; -1 pads the last batch of each."""
        s, n = self.settings, len(self.counted)  # rows of weight 0 are never picked
        order = np.full((self.chunk, s.batches * s.batch_size), -1, np.int32)
        for i in range(self.chunk):
            random = np.random.default_rng([*self.shuffle, epoch + i])
            order[i, :n] = random.permutation(self.counted)
        return jnp.asarray(order.reshape(-1, s.batch_size))

    def advance(self, state: State, epoch: int) -> tuple[State, Terms, bool]:
        """One chunk: the new state, the mean terms, and whether all is finite."""
        key = jax.random.fold_in(self.noise_key, epoch)
        new, terms, sound = program(self.settings)(
            state, self.rows, self.order(epoch), key, self.hyper
        )
        return new, Terms(*(float(v) for v in terms)), bool(sound)


def run(
    training: Training,
    watch: _HeldOut | None = None,
    saved: Checkpoint | None = None,
    callback: Callable[[Progress], None] | None = None,
) -> Solution:
    """All chunks of a training, one after another."""
    state, best, epoch = training.start, training.start.posterior, 0
    trace: list[list[float]] = []
    if saved is not None:
        (state, best), epoch, trace, scores = saved.restore((state, best))
        if watch is not None:
            watch.scores = scores
    while epoch < training.epochs and not (watch is not None and watch.patience_is_over()):
        new, terms, sound = training.advance(state, epoch)
        if not sound:
            return finished(training, best, trace, epoch, sound=False)
        state, epoch = new, epoch + training.chunk
        trace.append([float(v) for v in terms])
        score = watch.look(state.posterior, epoch) if watch is not None else None
        if watch is None or watch.since_best() == 0:
            best = state.posterior
        if saved is not None:
            saved.write((state, best), epoch, trace, watch.scores if watch is not None else [])
        if callback is not None:
            callback(Progress(epoch, training.epochs, terms, score))
    since_best = watch.since_best() * training.chunk if watch is not None and trace else 0
    return finished(training, best, trace, epoch, since_best=since_best)


def finished(
    training: Training,
    posterior: Any,
    trace: Any,
    epoch: int,
    *,
    sound: bool = True,
    since_best: int = 0,
) -> Solution:
    """The Solution of a fit that ended after `epoch` epochs."""
    planned = f"epoch {epoch} of {training.epochs}"
    if not sound:
        sentence = (
            f"Stopped after {planned}, whose state is returned: the loss was no longer finite. "
            "Try a smaller learning_rate, or look for huge values in x and y."
        )
    elif since_best:
        sentence = (
            f"Stopped after {planned}: the held-out loss was best after epoch "
            f"{epoch - since_best}, whose state is returned."
        )
    else:
        sentence = f"Trained for {epoch} epoch{'' if epoch == 1 else 's'}."
    trace = np.asarray(trace, float).reshape(-1, 3)
    last = float(trace[-1, 0]) if len(trace) else math.nan
    return Solution(posterior, Status(sound, epoch, last, sentence), trace)


class _HeldOut:
    """The loss on rows that are not trained on, and the best state so far."""

    def __init__(self, training: Training, rows: tuple[Any, Any], patience: int) -> None:
        _check.count(patience, "patience", "It counts looks at the held-out rows.")
        if not isinstance(rows, (tuple, list)) or len(rows) != 2:
            raise InvalidInput(
                f"held_out must be a pair (x, y), got {type(rows).__name__}. Try held_out=(x, y)."
            )
        self.training, self.patience = training, patience
        self.x, self.y = checked_rows(training.settings.model, *rows, name="held_out ")
        self.scores: list[float] = []

    def look(self, posterior: Any, epoch: int) -> float:
        settings, hyper = self.training.settings, self.training.hyper
        key = jax.random.fold_in(self.training.held_out_key, epoch)
        losses = row_losses(settings, posterior, self.x, self.y, key, hyper.numbers)
        self.scores.append(float(np.nan_to_num(np.mean(losses), nan=np.inf)))
        return self.scores[-1]

    def since_best(self) -> int:
        return len(self.scores) - 1 - int(np.argmin(self.scores))

    def patience_is_over(self) -> bool:
        return bool(self.scores) and self.since_best() >= self.patience


def checked_rows(model: LogLik, x: Any, y: Any, name: str = "") -> tuple[Any, Any]:
    """x and y as arrays that the model can take, or an InvalidInput that names the argument."""
    x, y = _numbers(f"{name}x", x), _numbers(f"{name}y", y)
    if x.ndim < 1 or len(x) == 0:
        raise InvalidInput(f"{name}x must have at least one row, got shape {x.shape}.")
    if y.shape[:1] != x.shape[:1]:
        raise InvalidInput(
            f"{name}y must have one entry for each of the {len(x)} rows of x, got shape {y.shape}."
        )
    kind = jnp.result_type(float)
    whole = y.dtype.kind in "biu" and (not y.size or np.abs(y).max() < 2**31)
    with np.errstate(over="ignore"):  # what overflows is found just below
        x = x.astype(kind, copy=False)
        y = y.astype(np.int32, copy=False) if whole else y.astype(kind, copy=False)
    for label, values in (("x", x), ("y", y)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            _check.finite(f"{name}{label}", values, "Impute, rescale or drop such rows first.")
    model.check(x, y)
    return x, y


def _numbers(name: str, values: Any) -> Any:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            f"{name} must be an array of real numbers, got dtype {array.dtype}. Code text and "
            "categories as numbers, and make all rows of one length."
        )
    return array


def _check_parts(model: Any, criterion: Any, posterior: Any, prior: Any) -> None:
    for name, value, method, remedy in (
        ("model", model, "log_lik", "Build it with Model(network, likelihood)."),
        ("criterion", criterion, "rows", "Try Criterion(m=10, t=0.5)."),
        ("posterior", posterior, "divergence", "Try mean_field(), with its brackets."),
    ):
        if isinstance(value, type) or not hasattr(value, method):
            raise InvalidInput(f"{name} must have a method {method}, got {value!r}. {remedy}")
    if not isinstance(prior, Prior):
        raise InvalidInput(f"prior must come from prior(mean, std), got {prior!r}.")
    for name, value in prior._asdict().items():
        if np.shape(value) not in ((), (1,), (model.size,)):
            raise InvalidInput(
                f"prior {name} must be one number or one for each of the {model.size} parameters, "
                f"got shape {np.shape(value)}."
            )


def _check_groups(criterion: Objective, posterior: Posterior) -> None:
    m, k = _check.members(criterion.m, infinite=False), posterior.components
    if max(m, k) % min(m, k):
        raise InvalidInput(
            f"m must divide the posterior's {k} components or be a multiple of them, so that draws "
            f"can be shared out evenly, got m = {m:g}. Choose m = {k} or {2 * k}."
        )


def _divisor(number: int, most: int) -> int:
    """The largest divisor of `number` up to `most`: chunks of one length need one compilation."""
    return max(d for d in range(1, min(number, most) + 1) if number % d == 0)
