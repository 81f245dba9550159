"""Networks whose weights have a posterior, by gradients of the (m,t)-robust criterion."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mtbayes._values import must, must_be_array, storable
from mtbayes.criteria import Criterion
from mtbayes.learners import MEMBERS, Crossing, Place, Trained
from mtbayes.learners.pool import geometric_mean
from mtbayes.maths import draws
from mtbayes.models import Model
from mtbayes.posteriors import Posterior, Prior, prior
from mtbayes.predicting import predictive
from mtbayes.predictives import ClassPredictive, in_order
from mtbayes.solve.checkpoint import Checkpoint
from mtbayes.solve.gradient import Training, run
from mtbayes.solve.problem import Held, Problem
from mtbayes.solve.whole import descend
from mtbayes.types import Array, Rows, Solution

MIDDLE = 0.7
"""The t at which a fit to a smaller one begins: from a random start it may never find the rows."""
_NEAR = 0.1  # how far a point is held from where it was, in units of a weight at the start
_BRIEF = 0.12  # of a fit's epochs, where learners are compared
_SHARE = 0.2  # of a fit's epochs, for those at its own t
# Of a fit whose epochs go by the number of rows: epochs where neither fewer steps would be made
# than the least nor more than the most.
_EPOCHS, _LEAST_STEPS, _MOST_STEPS = 40, 1500, 6000
_STREAM_STEPS = 30_000  # of one to a stream, at least, and at least one epoch
_FEW_MEMBERS = 30  # of the predictives that t is chosen by
_FEW_ROWS = 1000  # below which all folds compare all t
_JUDGES = 3000  # rows that say how sure modes may be that are trained as long as those of the end


class Legs(NamedTuple):
    """A fit in two parts, at `MIDDLE` and at its own t; a chunk's length divides both."""

    first: int
    second: int
    chunk: int

    @classmethod
    def of(cls, epochs: int) -> Legs:
        """So that both together are about so many epochs."""
        chunk = max(1, round(_SHARE * epochs / 2))
        return cls(chunk * max(1, round(epochs / chunk) - 2), 2 * chunk, chunk)


@storable
@dataclass(frozen=True)
class NetworkLearner:
    """A network under a likelihood, its posterior a mixture of modes: Gaussians or points.

    m, t_p, beta, joint: of the criterion
    epochs: passes over the rows; None goes by their number
    width: standard deviation of a weight before any row is seen, in units of 1/√inputs
    effort: factor on the epochs
    last: share of the epochs of modes that left a fold out, for all rows in the end; judged are the
        modes before it, and how sure those in the end may be by modes that are trained as long
    geometric: whether the geometric mean of what modes say is told, in place of their mean
    """

    model: Model
    posterior: Posterior
    m: int
    t_p: float
    beta: float
    epochs: int | None
    batch_size: int
    learning_rate: float
    joint: bool = True
    width: float = 2.0
    effort: float = 1.0
    last: float = 0.0
    geometric: bool = False
    threaded = False

    @property
    def name(self) -> str:
        """Without a hidden layer it is linear."""
        return "linear" if len(self.model.linears) == 1 else "network"

    @property
    def words(self) -> str:
        """How many modes it has, and which loss they have."""
        k, what = self.posterior.components, "linear map" if self.name == "linear" else "network"
        if k == 1:
            return f"one {what} of {self.m} members"
        return f"{k} {what}s" + (f", {self.m} of them as one" if self.joint else "")

    def criterion(self, t: float) -> Criterion:
        """The criterion at t."""
        return Criterion(m=self.m, t=t, beta=self.beta, t_p=self.t_p, joint=self.joint)

    def brief(self) -> NetworkLearner:
        """The same with few epochs, to be compared with others at little cost."""
        return replace(self, effort=_BRIEF * self.effort)

    @property
    def prior(self) -> Prior:
        """Of the weights, before any row is seen."""
        return prior(0.0, self.width * self.model.scale())

    def passes(self, rows: int) -> int:
        """Epochs for so many rows in memory."""
        batches = -(-rows // min(self.batch_size, rows))
        steps = np.clip(_EPOCHS * batches, _LEAST_STEPS, _MOST_STEPS)
        usual = self.epochs or float(np.clip(math.ceil(steps / batches), 10, 500))
        return max(1, round(self.effort * usual))

    def problem(self, rows: Rows, t: float) -> Problem:
        """What a fit of rows at t minimises, and how."""
        return Problem(
            self.model,
            self.criterion(t),
            rows,
            self.posterior,
            self.prior,
            learning_rate=self.learning_rate,
            epochs=self.passes(len(rows.x)),
            batch_size=self.batch_size,
        )

    # A learner's methods.

    def prepared(self, rows: Rows) -> Rows:
        """Rows on the device."""
        return rows._replace(x=Held.of(self.model, rows.x, rows.y), y=None)

    def looks(self, rows: int, folds: int) -> int:
        """Two folds are enough where rows are many."""
        return folds if rows < _FEW_ROWS else 2

    def fit(
        self, prepared: Rows, t: float, key: Array, *, place: Place = Place(), start: Any = None
    ) -> Trained:
        """At a small t in two legs, as the fits of folds are; from a start, or large, in one."""
        problem = replace(self.problem(prepared, t), start=_on_device(start), mesh=place.mesh)
        if start is not None or t >= MIDDLE:
            return trained(solved(problem, key, "final", place))
        legs, parts, state, done = Legs.of(problem.epochs), list[Solution](), None, 0
        total = legs.first + legs.second
        for name, at, epochs in (("final-start", MIDDLE, legs.first), ("final", t, legs.second)):
            leg = replace(
                problem, criterion=self.criterion(at), epochs=epochs, start=state, chunk=legs.chunk
            )
            own = draws.child(key, done)
            parts.append(solved(leg, own, name, place.part(done / total, epochs / total)))
            state, done = parts[-1].state, done + epochs
        return trained(*parts)

    def unseen(
        self,
        prepared: Rows,
        fold: Array,
        which: Sequence[int],
        path: Sequence[float],
        key: Array,
        *,
        place: Place = Place(),
    ) -> list[Any]:
        """Every fold's fits start at one t, in the middle, and end each at its own.

        So candidates differ in nothing else and share most of the work. All chunks have one length:
        one compiled program serves all.
        """
        parts = []
        for i, k in enumerate(which):
            own = draws.child(key, 1 + k)
            here = place.part(i / len(which), 1 / len(which))
            rows = prepared._replace(weight=np.where(fold == k, 0.0, prepared.weight))
            states = self._fold(rows, k, path, own, here)
            x = prepared.x.rows[0][fold == k]
            parts.append([self.predictive(s, x, own, _FEW_MEMBERS) for s in states])
        asked = fold[np.isin(fold, which)]
        return [in_order(list(each), asked) for each in zip(*parts, strict=True)]

    def _fold(
        self, rows: Rows, k: int, path: Sequence[float], key: Array, place: Place
    ) -> list[Any]:
        """The states of fits to all folds but k, for each t."""
        problem = replace(self.problem(rows, MIDDLE), mesh=place.mesh)
        legs = Legs.of(problem.epochs)
        problem = replace(problem, epochs=legs.first, chunk=legs.chunk)
        total, done = legs.first + legs.second * len(path), legs.first
        middle = draws.child(key, round(1000 * MIDDLE))
        here = place.part(0.0, legs.first / total)
        start = solved(problem, middle, f"fold-{k}-start", here).state
        states = []
        for t in path:
            leg = replace(problem, criterion=self.criterion(t), epochs=legs.second, start=start)
            own = draws.child(key, round(1000 * t))
            here = place.part(done / total, legs.second / total)
            states.append(solved(leg, own, f"fold-{k}-{t:g}", here).state)
            done += legs.second
        return states

    def crossed(
        self, rows: Rows, fold: Array, t: float, key: Array, *, place: Place = Place()
    ) -> Crossing:
        """Modes of which each leaves a fold out, in the middle first and then at t."""
        prepared = self.prepared(rows)
        left_out = np.arange(self.posterior.components) % (int(fold.max()) + 1)
        weight = np.where(fold[:, None] == left_out, 0.0, prepared.weight[:, None])
        problem = self.problem(prepared._replace(weight=weight), MIDDLE)
        if self.name == "linear":
            return self._downhill(problem, fold, left_out, t, key, place)
        legs = Legs.of(problem.epochs)
        problem = replace(problem, epochs=legs.first, chunk=legs.chunk, mesh=place.mesh)
        share = legs.first / (legs.first + legs.second)
        begun = solved(problem, key, f"{self.name}-start", place.part(0.0, share))
        judges = np.sort(np.random.default_rng(0).permutation(len(fold))[:_JUDGES])

        def at(t: float, _inner: Any, place: Place) -> Crossing:
            leg = replace(
                problem, criterion=self.criterion(t), epochs=legs.second, start=begun.state
            )
            own = draws.child(key, round(1000 * t))
            ended = solved(leg, own, f"{self.name}-{t:g}", place)
            made = trained(begun, ended)

            def longer(weight: Array, name: str, place: Place) -> Any:
                chunks = max(1, round(self.last * (legs.first + legs.second) / legs.chunk))
                rest = replace(
                    leg,
                    rows=prepared._replace(weight=weight),
                    epochs=chunks * legs.chunk,
                    start=_on_device(made.state),
                )
                name = f"{self.name}-{t:g}-{name}"
                return trained(solved(rest, draws.child(own, 1), name, place)).state

            def whole(place: Place) -> Any:
                every = np.repeat(prepared.weight[:, None], len(left_out), axis=1)
                return longer(every, "last", place) if self.last else made.state

            def later(place: Place) -> Any:
                few = np.isin(np.arange(len(fold)), judges)
                without = np.where(few[:, None], weight, prepared.weight[:, None])
                return longer(without, "late", place)

            plain = Crossing(t, None, whole, at, None, made.sentence, made.history)
            ask = prepared.x.rows[0], fold, left_out, key
            return self.spoken(plain, made.state, ask, (later, judges) if self.last else None)

        return at(t, None, place.part(share, 1 - share))

    def spoken(
        self,
        plain: Crossing,
        state: Any,
        ask: tuple[Array, Array, Array, Array],
        later: tuple[Callable[[Place], Any], Array] | None,
    ) -> Crossing:
        """A crossing, with what the modes of a state say of the rows that each has left out.

        ask: rows, the fold of each, the fold that each mode left out, and a key
        later: makes the state of modes that were trained on as those of the end are; and the
            numbers of the rows that they leave out still
        """
        x, fold, left_out, key = ask
        folds = int(fold.max()) + 1

        def halves() -> list[Any]:
            each = np.arange(len(left_out)) // folds % 2
            if 2 * each.sum() != len(each):
                return []
            return [self._left_out(state, *ask, each == half) for half in (0, 1)]

        def late(place: Place) -> tuple[Any, Array]:
            longer, judges = later  # type: ignore[misc]
            return self._left_out(longer(place), x[judges], fold[judges], left_out, key), judges

        def otherwise() -> tuple[NetworkLearner, Crossing]:
            other = replace(self, geometric=True)
            return other, other.spoken(plain, state, ask, later)

        unseen = self._left_out(state, *ask)
        known = len(left_out) > folds and isinstance(unseen, ClassPredictive)
        return plain._replace(
            unseen=unseen,
            halves=halves,
            late=late if later else None,
            otherwise=otherwise if known and not self.geometric else None,
        )

    def _downhill(
        self, problem: Problem, fold: Array, left_out: Array, t: float, key: Array, place: Place
    ) -> Crossing:
        """The same without hidden units, by all rows at once: at t = 1, where J is convex, first.

        From there, and not from random weights, a smaller t begins.
        """
        plain = descend(replace(problem, criterion=self.criterion(1.0))).state

        def at(t: float, _inner: Any, place: Place) -> Crossing:
            begun = replace(problem, criterion=self.criterion(t), start=plain)
            ended = descend(begun, place.callback)
            unseen = self._left_out(ended.state, problem.rows.x.rows[0], fold, left_out, key)
            made = trained(ended)
            return Crossing(t, unseen, lambda _: made.state, at, None, made.sentence, made.history)

        return at(t, None, place)

    def _left_out(
        self,
        state: Any,
        x: Array,
        fold: Array,
        left_out: Array,
        key: Array,
        which: Array | bool = True,
    ) -> Any:
        """The predictive of every row by the modes that have not seen it; which: of them."""
        parts, state = [], jax.tree.map(np.asarray, state)
        for k in range(int(fold.max()) + 1):
            some = jax.tree.map(lambda v, k=k: v[(left_out == k) & which], state)
            family: Any = type(self.posterior)
            own = replace(self, posterior=family(some.components))
            parts.append(own.predictive(some, x[fold == k], key))
        return in_order(parts, fold)

    def predictive(self, state: Any, x: Array, key: Array, members: int = MEMBERS) -> Any:
        """The predictive of new rows by members drawn with the key."""
        if self.geometric:
            family: Any = type(self.posterior)
            one = replace(self, posterior=family(1), geometric=False)
            modes = [jax.tree.map(lambda v, k=k: v[k : k + 1], state) for k in range(len(state[0]))]
            return geometric_mean([one.predictive(mode, x, key, members) for mode in modes])
        state = _on_device(state)
        return predictive(self.model, self.posterior, state, x, key=key, members=members)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of a row that the network takes."""
        model: Any = self.model
        known = hasattr(model, "network")
        shape = model.network.input_shape if known else (model.dimensions,)
        must(shape and all(isinstance(side, int) and side > 0 for side in shape), "a row's shape")
        return tuple(shape)

    def check(self, state: Any, shape: tuple[int, ...], classes: int) -> None:
        """Parameters of every mode, as many as the network has."""
        must(self.row_shape == shape, "columns of the network")
        must(isinstance(state, self.posterior.state), "the posterior's parameters")
        if isinstance(self.model, Model):
            network: Any = self.model.network
            outputs = self.model.likelihood.outputs
            must(not classes or outputs == classes, "outputs of the network")
            must(network.layers[-1].units == outputs, "outputs of the network")
        modes, size = self.posterior.components, self.model.size
        for values in state:
            must_be_array(values, None, "the posterior's parameters")
        must(state.mean.shape == (modes, size), "the posterior's parameters")
        for values in state[1:]:
            must(values.shape[:1] == (modes,) or values.shape == state.mean.shape, "the posterior")

    # Beyond a learner's.

    def further(self, state: Any, prepared: Rows, t: float, key: Array) -> Trained:
        """The posterior so far is the prior; a third of the epochs, at a lower rate."""
        return trained(solved(self._onwards(prepared, t, state), key, "further", Place()))

    def near(self, state: Any, prepared: Rows, t: float, beta: float, key: Array) -> Any:
        """The state of a fit that starts at another and is held near it, component by component."""
        held = replace(self.criterion(t), beta=beta)
        problem = replace(self._onwards(prepared, t, state), criterion=held)
        return trained(solved(problem, key, "near", Place())).state

    def stream(self, state: Any, rows: Rows, t: float, key: Array, place: Place) -> Trained:
        """All rows of a stream, from where a sample's fit has ended; rows.x is the stream."""
        batches = math.ceil(len(rows.x) / self.batch_size)
        problem = replace(self.problem(rows, t), start=_on_device(state), mesh=place.mesh)
        if self.epochs is None:
            problem = replace(problem, epochs=max(1, math.ceil(_STREAM_STEPS / batches)))
        return trained(solved(problem, key, "all", place))

    def _onwards(self, prepared: Rows, t: float, state: Any) -> Problem:
        """From a state, which is the prior too: KL is convex in both, so each mode has its own."""
        problem = self.problem(prepared, t)
        if self.posterior.drawn:
            std = jnp.exp(jnp.asarray(state.log_std))
        else:
            std = _NEAR * self.model.scale()
        return replace(
            problem,
            prior=Prior(jnp.asarray(state.mean), std),
            start=_on_device(state),
            learning_rate=0.3 * problem.learning_rate,
            epochs=max(1, problem.epochs // 3),
        )


def solved(problem: Problem, key: Array, name: str, place: Place) -> Solution:
    """One fit, kept under its name."""
    training, file = Training(problem, key), place.file(name)
    saved = None if file is None else Checkpoint(file, training.fingerprint())
    return run(training, saved=saved, callback=place.callback)


def trained(*parts: Solution) -> Trained:
    """The end of a fit in one part or more."""
    epochs = sum(part.status.steps for part in parts)
    trace = np.concatenate([part.trace for part in parts]).tolist()
    length = epochs / max(1, len(trace))
    return Trained(
        jax.tree.map(np.asarray, parts[-1].state),
        all(part.status.converged for part in parts),
        " ".join(dict.fromkeys(part.status.sentence for part in parts)),
        [
            {"epoch": int((i + 1) * length), "loss": a, "data": b, "divergence": c}
            for i, (a, b, c) in enumerate(trace)
        ],
    )


def _on_device(state: Any) -> Any:
    return None if state is None else jax.device_put(state)
