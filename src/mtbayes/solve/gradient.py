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
    key: a JAX key; the same key gives the same result
    posterior: `mean_field()` by default, or a Mixture or Particles
    prior: `prior(mean, std)`, N(0, 1) by default
    weight: [n], how often each row counts
    optimiser: any optax transformation; by default Adam whose rate falls from `learning_rate` to 0
        along a cosine
    start: a state of the posterior to start from
    held_out: (x, y) on which the loss is followed; training stops when it has not improved for
        `patience` chunks of epochs, and the best state is returned
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
    saved = Checkpoint(checkpoint, training.fingerprint()) if checkpoint is not None else None
    return _run(training, watch, saved, callback)


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
    ) -> None:
        posterior, prior = posterior or mean_field(), prior or gaussian_prior()
        _check.count(epochs, "epochs", "20 is the default.")
        _check.count(batch_size, "batch_size", "128 is the default.")
        _check.positive(learning_rate, "learning_rate", "0.01 is the default.")
        x, y = checked_rows(model, x, y)
        n = len(x)
        weights = _check.row_weights(weight, n)
        _check_groups(criterion, posterior)
        size = min(batch_size, n)
        self.settings = Settings(
            model, posterior, criterion.template(), optimiser, size, -(-n // size)
        )
        self.rows = Rows(
            jnp.asarray(x), jnp.asarray(y), jnp.asarray(weights / weights.sum(), float)
        )
        self.epochs, self.criterion = epochs, criterion
        self.chunk = _divisor(epochs, max(1, _CHUNK_STEPS // self.settings.batches))
        self.hyper = Hyper(
            tuple(jnp.asarray(v, float) for v in criterion.numbers()),
            jnp.asarray(criterion.regulariser_weight(float(weights.sum())), float),
            jnp.asarray(learning_rate, float),
            jnp.asarray(epochs * self.settings.batches, float),
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
            "optimiser": "default" if self.settings.optimiser is None else "given",
            "epochs": self.epochs,
            "batch_size": self.settings.batch_size,
            "data, prior, key and rates": describe((self.rows, self.hyper, self.noise_key)),
        }

    def order(self, epoch: int) -> Array:
        """Row numbers for a chunk of epochs, [steps, batch]; -1 pads the last batch of each."""
        s = self.settings
        n = self.rows.x.shape[0]
        order = np.full((self.chunk, s.batches * s.batch_size), -1, np.int32)
        for i in range(self.chunk):
            order[i, :n] = np.random.default_rng([*self.shuffle, epoch + i]).permutation(n)
        return jnp.asarray(order.reshape(-1, s.batch_size))

    def advance(self, state: State, epoch: int) -> tuple[State, Terms, bool]:
        """One chunk: the new state, the mean terms, and whether all is finite."""
        key = jax.random.fold_in(self.noise_key, epoch)
        new, terms, sound = program(self.settings)(
            state, self.rows, self.order(epoch), key, self.hyper
        )
        return new, Terms(*(float(v) for v in terms)), bool(sound)


def _run(
    training: Training,
    watch: _HeldOut | None,
    saved: Checkpoint | None,
    callback: Callable[[Progress], None] | None,
) -> Solution:
    state, best, epoch = training.start, training.start.posterior, 0
    trace: list[list[float]] = []
    if saved is not None:
        (state, best), epoch, trace, scores = saved.restore((state, best))
        if watch is not None:
            watch.scores = scores
    sentence, converged = None, True
    while epoch < training.epochs:
        new, terms, sound = training.advance(state, epoch)
        if not sound:
            sentence = (
                f"Stopped after epoch {epoch} of {training.epochs}, whose state is returned: the "
                "loss was no longer finite. Try a smaller learning_rate."
            )
            converged = False
            break
        state, epoch = new, epoch + training.chunk
        trace.append([float(v) for v in terms])
        score = watch.look(state.posterior, epoch) if watch is not None else None
        if watch is None or watch.just_improved():
            best = state.posterior
        if saved is not None:
            saved.write((state, best), epoch, trace, watch.scores if watch is not None else [])
        if callback is not None:
            callback(Progress(epoch, training.epochs, terms, score))
        if watch is not None and watch.patience_is_over():
            sentence = (
                f"Stopped after epoch {epoch} of {training.epochs}: the held-out loss was best "
                f"after epoch {epoch - watch.since_best() * training.chunk}, whose state is "
                "returned."
            )
            break
    return finished(training, best, trace, epoch, sentence, converged=converged)


def finished(
    training: Training,
    posterior: Any,
    trace: Any,
    epoch: int | None = None,
    sentence: str | None = None,
    *,
    converged: bool = True,
) -> Solution:
    """The Solution of a fit that ended; by default as planned."""
    trace = np.asarray(trace, float).reshape(-1, 3)
    epoch = training.epochs if epoch is None else epoch
    if not np.isfinite(trace).all():
        converged = False
        sentence = "Diverged: the loss was no longer finite. Try a smaller learning_rate."
    last = float(trace[-1, 0]) if len(trace) else math.nan
    sentence = sentence or f"Trained for {training.epochs} epochs."
    return Solution(posterior, Status(converged, epoch, last, sentence), trace)


class _HeldOut:
    """The loss on rows that are not trained on, and the best state so far."""

    def __init__(self, training: Training, rows: tuple[Any, Any], patience: int) -> None:
        _check.count(patience, "patience", "It counts chunks of epochs.")
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

    def just_improved(self) -> bool:
        return self.since_best() == 0

    def patience_is_over(self) -> bool:
        return self.since_best() >= self.patience


def checked_rows(model: LogLik, x: Any, y: Any, name: str = "") -> tuple[Any, Any]:
    """x and y as arrays that the model can take, or an InvalidInput that names the argument."""
    x, y = np.asarray(x), np.asarray(y)
    if x.ndim < 1 or len(x) == 0:
        raise InvalidInput(f"{name}x must have at least one row, got shape {x.shape}.")
    if y.shape[:1] != x.shape[:1]:
        raise InvalidInput(
            f"{name}y must have one entry for each of the {len(x)} rows of x, got shape {y.shape}."
        )
    kind = jnp.result_type(float)
    x = x.astype(kind, copy=False)
    y = y.astype(kind, copy=False) if y.dtype.kind == "f" else y
    for label, values in (("x", x), ("y", y)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            _check.finite(f"{name}{label}", values, "Impute or drop such rows first.")
    model.check(x, y)
    return x, y


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
