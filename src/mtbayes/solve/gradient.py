"""Minimise J over a family of posteriors by stochastic gradients."""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mtbayes import _check
from mtbayes.criteria import Objective
from mtbayes.errors import InvalidInput
from mtbayes.maths import draws
from mtbayes.members import Points
from mtbayes.models import LogLik, Model
from mtbayes.networks import Stack
from mtbayes.posteriors import Posterior, Prior, mean_field
from mtbayes.posteriors import prior as gaussian_prior
from mtbayes.progress import Callback, Progress
from mtbayes.solve.checkpoint import Checkpoint, describe
from mtbayes.solve.checks import check_numbers, checked_rows
from mtbayes.solve.devices import agreed, check_split, together
from mtbayes.solve.feed import feed_of
from mtbayes.solve.problem import Problem
from mtbayes.solve.program import Hyper, Settings, State, Terms, begun, divergence, row_losses
from mtbayes.types import Array, Rows, Solution, Status


def fit(
    model: LogLik,
    x: Any,
    y: Any,
    criterion: Objective,
    *,
    key: Array | int,
    posterior: Posterior | None = None,
    prior: Prior | None = None,
    weight: Any = None,
    optimiser: optax.GradientTransformation | None = None,
    learning_rate: float = 0.01,
    epochs: int = 20,
    batch_size: int = 128,
    start: Any = None,
    shuffle: bool = True,
    mesh: Any = None,
    held_out: tuple[Any, Any] | None = None,
    patience: int = 5,
    checkpoint: str | Path | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimise J over a posterior family by stochastic gradients.

    model: a `Model` or `CustomModel`; x, y: rows [n, ...] and targets [n]. More rows than
        memory holds are a `pyarrow` data set, a path that it opens, an iterator of record batches,
        with y and weight the names of columns; a `numpy.memmap`; or a `Stream` (docs/scale.md)
    criterion: `Criterion(m, t, beta, t_p)` or a rival's
    key: a JAX key, or an int; the same key gives the same result
    posterior: `mean_field()` by default, or a Mixture, Particles or Rank1
    prior: `prior(mean, std)`, N(0, 1) by default
    weight: [n], how often each row counts
    optimiser: any optax transformation, with its own rate; by default Adam
    learning_rate: where the default optimiser's rate starts; it falls to 0 along a cosine
    epochs: passes over the rows; batch_size: rows a step
    start: a state of the posterior to start from
    shuffle: whether rows are taken in a new random order each epoch
    mesh: a `jax.sharding.Mesh`; its first axis splits the rows of each step over devices, a second
        one the members
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
    problem = Problem(
        model,
        criterion,
        Rows(x, y, weight),
        mean_field() if posterior is None else posterior,
        gaussian_prior() if prior is None else prior,
        optimiser,
        learning_rate,
        epochs,
        batch_size,
        start,
        shuffle,
        mesh,
    )
    training = Training(problem, key)
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
    """One fit: its rows, its compiled program, its start."""

    def __init__(self, problem: Problem, key: Any) -> None:
        criterion = problem.criterion
        keys = [draws.child(key, i) for i in range(4)]
        self.problem, self.member_key, self.held_out_key = problem, keys[1], keys[3]
        seed = np.asarray(jax.random.key_data(keys[2])).tolist() if problem.shuffle else None
        self.feed = feed_of(problem, seed)
        self.schedule = self.feed.schedule
        self.settings = Settings(
            problem.model,
            problem.posterior,
            criterion.template(),
            problem.optimiser,
            self.feed.size,
            self.feed.mesh,
        )
        check_split(self.settings.members, self.feed.mesh)
        if problem.posterior.drawn:
            check_numbers(self.settings.plan.size, self.settings.members)
        kind = np.dtype(jnp.result_type(float)).type
        self.hyper = Hyper(
            tuple(kind(v) for v in criterion.numbers()),
            kind(criterion.regulariser_weight(self.feed.total)),
            kind(problem.learning_rate),
            kind(self.schedule.batches),
            kind(problem.epochs * self.schedule.batches),
            problem.prior,
        )
        first = problem.start
        if first is None:
            first = problem.posterior.init(keys[0], problem.model)
        self.start = begun(self.settings, first)
        # KL is finite.
        far = 0.0 if criterion.t_p == 1 else float(divergence(self.settings)(first, problem.prior))
        if not math.isfinite(far):
            raise InvalidInput(
                f"t_p must give a finite divergence from the prior at the start, got {far} at "
                f"t_p = {criterion.t_p:g}. Above order 1 the prior must be wide enough; raise its "
                "std or lower t_p."
            )

    def fingerprint(self) -> dict[str, Any]:
        """What a checkpoint must agree with, by name."""
        return {
            "model": describe(self.settings.model),
            "posterior": repr(self.settings.posterior),
            "criterion": repr(self.problem.criterion),
            "optimiser": describe(self._first_move()),
            "epochs": self.problem.epochs,
            "batch_size": self.settings.batch_size,
            "rows, targets or weights": self.feed.fingerprint(),
            "prior, key or rates": describe((self.hyper, self.member_key)),
            "start or log_lik": describe((self.start.posterior, self._first_log_lik())),
        }

    def _first_move(self) -> Any:
        """What the optimiser makes of a gradient of ones: two optimisers hardly agree on it."""
        rule, state = self.settings.optimiser, self.start
        if rule is None:
            return np.zeros(1)
        ones = jax.tree.map(jnp.ones_like, state.posterior)
        return rule.update(ones, state.optimiser, state.posterior)

    def _first_log_lik(self) -> Array:
        """log_lik of a few rows at the start: a user's function has no other fingerprint."""
        model = self.settings.model
        if isinstance(model, Model) and isinstance(model.network, Stack):
            return np.zeros(0)
        x, y = self.feed.few()
        posterior = self.settings.posterior
        theta = posterior.sample(draws.key(0), self.start.posterior, posterior.components)
        return self.settings.model.log_lik(Points(theta), x, y)

    def advance(self, state: State, rows: Any, chunk: int) -> tuple[State, Terms, bool]:
        """One chunk: the new state, the mean terms, and whether all is finite."""
        key = self.schedule.key(self.member_key, chunk)
        new, terms, sound = self.feed.advance(self.settings, state, rows, key, self.hyper)
        return new, Terms(*(float(v) for v in terms)), bool(sound)


def run(
    training: Training,
    watch: _HeldOut | None = None,
    saved: Checkpoint | None = None,
    callback: Callback | None = None,
) -> Solution:
    """All chunks of a training, one after another."""
    with together(saved and saved.path), saved or nullcontext():
        return _run(training, watch, saved, callback)


def _run(
    training: Training,
    watch: _HeldOut | None,
    saved: Checkpoint | None,
    callback: Callback | None,
) -> Solution:
    state, best, done = training.start, training.start.posterior, 0
    schedule, trace = training.schedule, list[list[float]]()
    if saved is not None:
        (state, best), done, trace, scores = saved.restore((state, best))
        if training.feed.mesh is not None:
            agreed(done, saved.path)
        if watch is not None:
            watch.scores = scores
    for rows in training.feed.chunks(done):
        if watch is not None and watch.patience_is_over():
            break
        new, terms, sound = training.advance(state, rows, done)
        if not sound:
            return finished(training, best, trace, schedule.epochs_after(done), sound=False)
        state, done = new, done + 1
        trace.append([float(v) for v in terms])
        score = watch.look(state.posterior, done) if watch is not None else None
        if watch is None or watch.since_best() == 0:
            best = state.posterior
        if saved is not None:
            saved.write((state, best), done, trace, watch.scores if watch is not None else [])
        if callback is not None:
            share, epochs = done / schedule.chunks, training.problem.epochs
            epoch = schedule.epochs_after(done)
            callback(Progress(share, _in_words(terms), epoch, epochs, terms, score))
    since_best = 0
    if watch is not None and trace:
        since_best = schedule.epochs_after(done) - schedule.epochs_after(done - watch.since_best())
    return finished(training, best, trace, schedule.epochs_after(done), since_best=since_best)


def _in_words(terms: Terms) -> str:
    prior = float(terms.loss - terms.data)
    return f"loss {float(terms.loss):.3f} = data {float(terms.data):.3f} + prior {prior:.3f}"


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
    planned = f"epoch {epoch} of {training.problem.epochs}"
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

    def look(self, posterior: Any, chunk: int) -> float:
        settings, hyper = self.training.settings, self.training.hyper
        key = draws.child(self.training.held_out_key, chunk)
        losses = row_losses(settings, posterior, self.x, self.y, key, hyper.numbers)
        self.scores.append(float(np.nan_to_num(np.mean(losses), nan=np.inf)))
        return self.scores[-1]

    def since_best(self) -> int:
        return len(self.scores) - 1 - int(np.argmin(self.scores))

    def patience_is_over(self) -> bool:
        return bool(self.scores) and self.since_best() >= self.patience
