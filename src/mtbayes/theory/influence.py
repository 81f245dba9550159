"""The influence of a row on a fit (Theorem 2).

Put a share γ of the data's weight on a row z, so that x_i keeps (1-γ)/n: the minimum φ* of J moves,

    dφ*/dγ = -H⁻¹ ∂_φ [R(z) - mean_i R(x_i)]   at γ = 0,

with H the second derivative of J, regulariser included. (The paper has the opposite sign.) Any
f(φ*) moves by ∂f·dφ*/dγ, so that s = H⁻¹∂f, one linear system, gives the influence of every row on
f: the derivative of the rows' losses along s, a pass over them. J itself moves by
R(z) - mean_i R(x_i), for its derivative in φ is 0 at the minimum.

Leaving out row i of n is γ = -1/(n-1) at z = x_i, if the regulariser keeps its weight. `fit` keeps
beta instead: J without row i is, times (n-1)/n, J - R(x_i)/n, and φ* moves by H⁻¹ ∂_φ R(x_i)/n.

All of it is about the J that a fixed set of members gives, a smooth function without noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from mtbayes import _check
from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.maths import draws
from mtbayes.members import Points
from mtbayes.models import LogLik
from mtbayes.posteriors import Posterior, Prior, grouped, mean_field, members_of
from mtbayes.posteriors import prior as gaussian_prior
from mtbayes.progress import Callback, Progress, silent
from mtbayes.solve.checks import check_means, checked_rows
from mtbayes.theory.curvature import Curvature, Programs, Solver
from mtbayes.types import Array, FloatArray, Rows, Status


class Influence:
    """J as a smooth function of φ, its curvature at φ, and what rows do to its minimum.

    log_density: (φ, x, y) -> [groups, n], the log predictive density of each row by each group of
        members (one group where it is known in closed form); R is the mean of -log_t of it
    regulariser: φ -> a number, its weight included
    state: φ, any tree of arrays, at or near the minimum of J (see `minimised`)
    x, y: the rows of the fit; weight[n]: how often each counts
    t: order of the t-logarithm
    curvature: what is inverted, and how accurately
    chunk: rows evaluated at once; less needs less memory
    callback: hears of progress, of a solve, then of the rows
    programs: compiled for the same functions and t, to be used again
    strength: factor on the regulariser

    The paper's example, q = N(φ, 1) and the model N(θ, 1) with m = ∞: the predictive is N(φ, 2).

    >>> x = np.array([-1.0, 0.0, 1.0])
    >>> log_density = lambda phi, x, y: -jnp.square(x - phi)[None] / 4 - math.log(4 * math.pi) / 2
    >>> toy = Influence(log_density, lambda phi: 0.0, jnp.array(0.0), x, x, t=1.0)
    >>> toy.on_state([6.0], [6.0]).round(3)  # of a mean: how far away the row is
    array([6.], dtype=float32)
    """

    def __init__(
        self,
        log_density: Callable[[Any, Array, Array], Array],
        regulariser: Callable[[Any], Array],
        state: Any,
        x: Any,
        y: Any,
        *,
        t: float,
        weight: Any = None,
        curvature: Curvature | None = None,
        chunk: int = 512,
        callback: Callback = silent,
        programs: Programs | None = None,
        strength: float = 1.0,
    ) -> None:
        _check.loss_order(t)
        self.chunk = _check.count(chunk, "chunk", "512 is the default.")
        self.log_density, self.regulariser, self.t = log_density, regulariser, float(t)
        self.curvature = curvature or Curvature()
        self.callback = callback
        self.x, self.y = _pair(x, y)
        self.weight = _check.row_weights(weight, len(self.x))
        phi, self._unravel = ravel_pytree(jax.tree.map(jnp.asarray, state))
        if not bool(jnp.all(jnp.isfinite(phi))):
            raise InvalidInput(
                "state must be finite, got parameters that are NaN or infinite. The fit has "
                "failed: read its status."
            )
        unravel = self._unravel
        self._programs = programs or Programs(
            lambda phi, x, y: log_density(unravel(phi), x, y),
            lambda phi: jnp.asarray(regulariser(unravel(phi)), phi.dtype),
            float(t),
        )
        self._phi, self._rows, self._strength = phi, self._in_chunks(self.weight), strength
        self._solver = Solver(self.curvature, self._programs, phi, self._rows, strength)

    def _elsewhere(
        self, phi: Array, weight: FloatArray, strength: float, curvature: Curvature
    ) -> Influence:
        """The same J at another φ, with other weights or curvature; nothing is compiled again."""
        return Influence(
            self.log_density,
            self.regulariser,
            self._unravel(phi),
            self.x,
            self.y,
            t=self.t,
            weight=weight,
            curvature=curvature,
            chunk=self.chunk,
            callback=self.callback,
            programs=self._programs,
            strength=strength,
        )

    @property
    def state(self) -> Any:
        """φ, as it was given."""
        return self._unravel(self._phi)

    # J and its minimum.

    def objective(self) -> tuple[float, float]:
        """J at φ, and the norm of its gradient there: 0 at a minimum."""
        value, gradient = self._programs.objective(self._phi, self._rows, self._strength)
        return float(value), float(jnp.linalg.norm(gradient))

    def minimised(self, weight: Any = None, *, tol: float = 1e-8) -> tuple[Influence, Status]:
        """The same J at its minimum, reached from φ; and how that went.

        weight: other weights for the rows (0 leaves one out), at the same beta: where they sum to
            less, the regulariser weighs more
        tol: norm of the gradient at which it ends; below 1e-4 needs double precision

        Steps are Newton's in a trust region, so that directions of negative curvature are left.
        """
        weights = _check.row_weights(self.weight if weight is None else weight, len(self.x))
        rows = self._in_chunks(weights)
        strength, kind = float(self.weight.sum() / weights.sum()), self._phi.dtype

        def objective(phi: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self._programs.objective(jnp.asarray(phi, kind), rows, strength)
            return float(value), np.asarray(gradient, float)

        def product(phi: FloatArray, v: FloatArray) -> FloatArray:
            ahead = self._programs.hessian(
                jnp.asarray(phi, kind), jnp.asarray(v, kind), rows, strength
            )
            return np.asarray(ahead, float)

        found = minimize(
            objective,
            np.asarray(self._phi, float),
            jac=True,
            hessp=product,
            method="trust-ncg",
            options={"gtol": tol, "maxiter": 1000},
        )
        left = float(np.linalg.norm(found.jac))
        moved = self._elsewhere(jnp.asarray(found.x, kind), weights, strength, self.curvature)
        sentence = f"{found.nit} Newton steps; the gradient's norm is {left:.1e}."
        return moved, Status(left <= tol, int(found.nit), left, sentence)

    def with_curvature(self, curvature: Curvature) -> Influence:
        """The same J and φ, another curvature; nothing is compiled again."""
        return self._elsewhere(self._phi, self.weight, self._strength, curvature)

    # What rows do.

    def on_state(self, x: Any, y: Any) -> Any:
        """dφ*/dγ for each row (x, y): the tree of φ with a first axis for rows.

        A matrix-free solve for each row: to see what rows do to one number use `on`.
        """
        x, y = self._checked(x, y)
        parts = []
        for begin, chunk in self._chunks(x, y):
            rows = np.asarray(self._programs.gradients(self._phi, *chunk), float)
            parts.append(rows[: len(x) - begin])
        right = self.mean_gradient() - np.concatenate(parts)
        solved = np.empty_like(right)
        for i, row in enumerate(right):
            solved[i] = self._solver.solve(row)[0]
            self.callback(Progress((i + 1) / len(right)))
        moved = jax.vmap(self._unravel)(jnp.asarray(solved, self._phi.dtype))
        return jax.tree.map(np.asarray, moved)

    def on(self, function: Callable[[Any], Array]) -> Effect:
        """The effect of rows on function(φ), a number; the linear system is solved here, once."""
        slope = jax.jit(jax.grad(lambda phi: function(self._unravel(phi))))(self._phi)
        if not bool(jnp.all(jnp.isfinite(slope))):
            raise InvalidInput(
                "function must have a finite gradient at φ, got NaN or infinity. A row whose "
                "density is 0 has an infinite log loss: leave it out."
            )
        return Effect(self, *self._solver.solve(np.asarray(slope, float), self.callback))

    def on_loss(self, x: Any, y: Any) -> Effect:
        """The effect on the mean log loss of rows (x, y): -log of the predictive of all members."""
        x, y = self._checked(x, y)

        def loss(state: Any) -> Array:
            groups = self.log_density(state, x, y)
            return math.log(len(groups)) - jnp.mean(jax.nn.logsumexp(groups, axis=0))

        return self.on(loss)

    def on_objective(self, x: Any, y: Any) -> FloatArray:
        """The derivative of the least J in γ for each row: R(z) - mean_i R(x_i)."""
        mean = np.average(self._each(self._programs.losses, self.x, self.y), weights=self.weight)
        return self._each(self._programs.losses, *self._checked(x, y)) - mean

    def along(self, direction: FloatArray, x: Any, y: Any) -> FloatArray:
        """direction·∂_φ R of each row (x, y)."""
        s = jnp.asarray(direction, self._phi.dtype)
        x, y = self._checked(x, y)
        return self._each(lambda phi, *rows: self._programs.along(phi, s, *rows), x, y)

    # Rows in chunks.

    def mean_gradient(self) -> FloatArray:
        """mean_i ∂_φ R(x_i): the gradient of J without its regulariser."""
        return np.asarray(self._programs.objective(self._phi, self._rows, 0.0)[1], float)

    def _each(self, program: Callable[..., Array], x: Array, y: Array) -> FloatArray:
        """A program's number for each row."""
        parts = []
        for begin, chunk in self._chunks(x, y):
            part = np.asarray(program(self._phi, *chunk), float)
            parts.append(part[: len(x) - begin])
        return np.concatenate(parts)

    def _chunks(self, x: Array, y: Array) -> Any:
        """Where each chunk begins, and its rows; the last one is padded."""
        size = min(self.chunk, len(x))
        for begin in range(0, len(x), size):
            picked = np.arange(begin, begin + size) % len(x)
            yield begin, (jnp.asarray(x[picked]), jnp.asarray(y[picked]))
            self.callback(Progress(min(1.0, (begin + size) / len(x))))

    def _in_chunks(self, weight: FloatArray) -> Rows:
        size = min(self.chunk, len(self.x))
        count = -(-len(self.x) // size)
        picked = np.arange(count * size).reshape(count, size)
        wrapped = picked % len(self.x)
        share = np.where(picked < len(self.x), weight[wrapped] / weight.sum(), 0.0)
        parts = self.x[wrapped], self.y[wrapped], share.astype(jnp.result_type(float))
        return Rows(*(jnp.asarray(part) for part in parts))

    def _checked(self, x: Any, y: Any) -> tuple[Array, Array]:
        x, y = _pair(x, y)
        for name, rows, own in (("x", x, self.x), ("y", y, self.y)):
            if rows.shape[1:] != own.shape[1:]:
                raise InvalidInput(
                    f"{name} must have rows of shape {own.shape[1:]} as in the fit, got "
                    f"{rows.shape[1:]}. Apply the same preparation; one row is x[None]."
                )
        return x, y


class Effect(NamedTuple):
    """The effect of rows on one number f(φ*)."""

    influence: Influence
    direction: FloatArray
    """s = H⁻¹ ∂f."""
    status: Status
    """How s was found."""

    def of(self, x: Any, y: Any) -> FloatArray:
        """df/dγ for each row (x, y), in the data or not: -s·∂_φ[R(z) - mean_i R(x_i)]."""
        mean = float(self.direction @ self.influence.mean_gradient())
        return mean - self.influence.along(self.direction, x, y)

    def without(self) -> FloatArray:
        """By how much f changes when each row of the fit is left out, to first order in 1/n.

        The refit keeps beta; a row of weight w loses all of it.
        """
        own = self.influence
        return own.weight / own.weight.sum() * own.along(self.direction, own.x, own.y)


def influence(
    model: LogLik,
    x: Any,
    y: Any,
    criterion: Criterion,
    state: Any,
    *,
    posterior: Posterior | None = None,
    prior: Prior | None = None,
    weight: Any = None,
    key: Any = 0,
    members: int = 100,
    curvature: Curvature | None = None,
    chunk: int = 512,
    callback: Callback = silent,
) -> Influence:
    """The influence of rows on what `fit(model, x, y, criterion, ...)` found.

    state: `Solution.state`; the other arguments as given to `fit`
    key: a JAX key, or an int, of the members that make J a function without noise
    members: how many, at least; rounded up to whole groups of m

    A fit by stochastic gradients is near the minimum of J, not at it, and J by other members is
    another function: call `minimised` first where numbers matter more than a ranking.

    >>> from mtbayes.criteria import Criterion
    >>> from mtbayes.likelihoods import Gaussian
    >>> from mtbayes.models import Model
    >>> from mtbayes.networks import mlp
    >>> from mtbayes.solve import fit
    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> y = x[:, 0] ** 2
    >>> y[10] = 5.0  # a wrong target
    >>> model, criterion = Model(mlp((1, 4, 1)), Gaussian(0.3)), Criterion(m=2, t=1.0)
    >>> state = fit(model, x, y, criterion, key=0, epochs=200).state
    >>> found = influence(
    ...     model, x, y, criterion, state, members=20, curvature=Curvature("gauss_newton", 0.1)
    ... )
    >>> int(np.argmin(found.on_loss(x, x[:, 0] ** 2).without()))  # whose loss falls most
    10
    """
    if not isinstance(criterion, Criterion):
        raise InvalidInput(
            f"criterion must be a Criterion(m, t, beta), got {type(criterion).__name__}. Theorem 2 "
            "is about its loss."
        )
    posterior = mean_field() if posterior is None else posterior
    prior = gaussian_prior() if prior is None else prior
    x, y = checked_rows(model, x, y)
    weights = _check.row_weights(weight, len(x))
    size = members_of(criterion, posterior)
    members = size * -(-_check.count(members, "members", "100 is the default.") // size)
    check_means(state, posterior, model)
    strength = criterion.regulariser_weight(float(weights.sum()))
    return Influence(
        partial(_log_density, model, posterior, criterion, members, draws.key(key)),
        lambda phi: strength * posterior.divergence(phi, prior, criterion.t_p),
        state,
        x,
        y,
        t=float(criterion.t),
        weight=weights,
        curvature=curvature,
        chunk=chunk,
        callback=callback,
    )


def _log_density(
    model: LogLik,
    posterior: Posterior,
    criterion: Criterion,
    members: int,
    key: Array,
    state: Any,
    x: Any,
    y: Any,
) -> Array:
    """Log of the mean likelihood of each group of m members, [groups, n]."""
    log_lik = model.log_lik(Points(grouped(criterion, posterior, key, state, members)), x, y)
    size = members if math.isinf(criterion.m) else int(criterion.m)
    groups = log_lik.reshape(-1, size, *log_lik.shape[1:])
    return jax.nn.logsumexp(groups, axis=1) - math.log(size)


def _pair(x: Any, y: Any) -> tuple[Array, Array]:
    """x and y as finite arrays of as many rows."""
    arrays = []
    for name, values in (("x", x), ("y", y)):
        array = np.asarray(values)
        if array.dtype.kind not in "iub":
            array = _check.finite(name, values, "Impute or drop such rows first.")
            array = array.astype(jnp.result_type(float))
        if array.ndim < 1 or not len(array):
            raise InvalidInput(f"{name} must have at least one row, got shape {array.shape}.")
        arrays.append(array)
    if len(arrays[0]) != len(arrays[1]):
        raise InvalidInput(
            f"x and y must have as many rows, got {len(arrays[0])} and {len(arrays[1])}."
        )
    return arrays[0], arrays[1]
