"""The curvature of J at a fit, and systems with it: dense for a small φ, matrix-free for others.

Everything is reverse mode: a model may hold functions that have no forward derivative, and the
price is a quarter to a half of a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.maths.tlog import log_t_of_any_order
from mtbayes.progress import Callback, Progress, silent
from mtbayes.types import Array, FloatArray, Rows, Status

_DENSE = 512  # parameters up to which the matrix is formed
_SINGULAR = {"float32": 1e-5, "float64": 1e-11}  # of the largest eigenvalue, what counts as 0
_REMEDY = (
    "Go to the minimum first (`minimised()`), add `damping`, or take Curvature('gauss_newton'), "
    "which has no negative directions."
)


@dataclass(frozen=True)
class Curvature:
    """Which curvature is inverted, and how accurately.

    kind: "hessian", the second derivative of J, or "gauss_newton". -log_t is convex in the
        predictive density p, with second derivative t·p^(-t-1); Gauss-Newton keeps that part,
        t·p^(1-t) ∂log p ∂log pᵀ for each row, and drops what comes from the bend of p itself. It
        is never negative, far from a minimum too
    damping: this number times the identity is added. It makes a singular system solvable, and
        keeps directions that the rows say nothing about from blowing up
    tol: relative residual at which conjugate gradients stop
    steps: conjugate gradient steps at most

    >>> Curvature("gauss_newton", damping=0.01).steps
    200
    """

    kind: str = "hessian"
    damping: float = 0.0
    tol: float = 1e-4
    steps: int = 200

    def __post_init__(self) -> None:
        _check.known("kind", self.kind, ["hessian", "gauss_newton"])
        damping = _check.finite("damping", self.damping, "0.01 is a usual damping.")
        if damping.ndim or damping < 0:
            raise InvalidInput(f"damping must be a number of at least 0, got {self.damping!r}.")
        _check.positive(self.tol, "tol", "1e-4 is the default.")
        _check.count(self.steps, "steps", "200 is the default.")


class Programs:
    """Compiled pieces of J(φ) = Σ_i w_i R(φ, x_i) + strength · D(φ), φ a flat vector.

    log_density: (φ, x, y) -> [groups, n], log of the predictive density of each row by each group
        of members; R is -log_t of it, averaged over groups
    """

    def __init__(
        self,
        log_density: Callable[[Array, Array, Array], Array],
        regulariser: Callable[[Array], Array],
        t: float,
    ) -> None:
        def losses(phi: Array, x: Array, y: Array) -> Array:
            return -jnp.mean(log_t_of_any_order(log_density(phi, x, y), t), axis=0)

        def over_chunks(rows: Rows, term: Callable[[Array, Array, Array], Any]) -> Any:
            def add(total: Any, chunk: Rows) -> tuple[Any, None]:
                return jax.tree.map(jnp.add, total, term(*chunk[:3])), None

            first = jax.tree.map(lambda v: v[0], rows)
            empty = jax.tree.map(
                lambda v: jnp.zeros(v.shape, v.dtype), jax.eval_shape(lambda: term(*first[:3]))
            )
            return jax.lax.scan(add, empty, rows)[0]

        def value(phi: Array, x: Array, y: Array, weight: Array) -> Array:
            return jnp.sum(weight * losses(phi, x, y))

        def objective(phi: Array, rows: Rows, strength: Array) -> tuple[Array, Array]:
            data = over_chunks(rows, lambda *chunk: jax.value_and_grad(value)(phi, *chunk))
            prior = jax.value_and_grad(regulariser)(phi)
            return data[0] + strength * prior[0], data[1] + strength * prior[1]

        def bend_of_prior(phi: Array, v: Array, strength: Array) -> Array:
            return strength * _hessian_product(regulariser, phi, v)

        def hessian(phi: Array, v: Array, rows: Rows, strength: Array) -> Array:
            data = over_chunks(
                rows, lambda *chunk: _hessian_product(lambda p: value(p, *chunk), phi, v)
            )
            return data + bend_of_prior(phi, v, strength)

        def gauss_newton(phi: Array, v: Array, rows: Rows, strength: Array) -> Array:
            def term(x: Array, y: Array, weight: Array) -> Array:
                inner, pull = jax.vjp(lambda p: log_density(p, x, y), phi)
                bend = t * jnp.exp((1 - t) * inner) * weight / len(inner)
                return pull(bend * _push(pull, inner, v))[0]

            return over_chunks(rows, term) + bend_of_prior(phi, v, strength)

        def along(phi: Array, direction: Array, x: Array, y: Array) -> Array:
            value, pull = jax.vjp(lambda p: losses(p, x, y), phi)
            return _push(pull, value, direction)

        def matrix(kind: str, phi: Array, rows: Rows, strength: Array) -> Array:
            product = {"hessian": hessian, "gauss_newton": gauss_newton}[kind]
            unit = jnp.eye(phi.size, dtype=phi.dtype)
            return jax.lax.map(lambda v: product(phi, v, rows, strength), unit)

        self.objective = jax.jit(objective)
        self.hessian, self.gauss_newton = jax.jit(hessian), jax.jit(gauss_newton)
        self.matrix = jax.jit(matrix, static_argnums=0)
        self.losses, self.along = jax.jit(losses), jax.jit(along)
        self.gradients = jax.jit(jax.jacrev(losses))


def _hessian_product(function: Callable[[Array], Array], at: Array, v: Array) -> Array:
    return jax.grad(lambda p: jnp.vdot(jax.grad(function)(p), v))(at)


def _push(pull: Callable[..., Any], value: Array, v: Array) -> Array:
    """The derivative along v of what `pull` is the transposed derivative of."""
    return jax.vjp(lambda u: pull(u)[0], jnp.zeros_like(value))[1](v)[0]


class Solver:
    """Systems A s = b with the curvature A at φ; the matrix is factored once."""

    def __init__(
        self,
        curvature: Curvature,
        programs: Programs,
        phi: Array,
        rows: Rows,
        strength: float,
    ) -> None:
        self.curvature, self.programs = curvature, programs
        self.phi, self.rows, self.strength = phi, rows, strength
        self._factor: Any = None

    def solve(self, right: FloatArray, callback: Callback = silent) -> tuple[FloatArray, Status]:
        """S for a right-hand side b, and how it was found; `callback` hears of the steps."""
        if len(right) <= _DENSE:
            if self._factor is None:
                self._factor = self._factored()
            direct = f"Solved directly for {len(right)} parameters."
            return cho_solve(self._factor, right), Status(True, 1, 0.0, direct)
        return self._iterated(right, callback)

    def _factored(self) -> Any:
        kind, damping = self.curvature.kind, self.curvature.damping
        found = self.programs.matrix(kind, self.phi, self.rows, self.strength)
        matrix = np.asarray(found, float)
        if not np.isfinite(matrix).all():
            raise _not_finite()
        matrix = (matrix + matrix.T) / 2 + damping * np.eye(len(matrix))
        values = np.linalg.eigvalsh(matrix)
        zero = _SINGULAR[str(found.dtype)] * max(values[-1], 0.0)
        if values[0] < -zero or values[-1] <= 0:
            raise InvalidInput(
                f"The {_NAMES[kind]} must be positive definite, got a smallest eigenvalue of "
                f"{values[0]:.3g} (the largest is {values[-1]:.3g}): φ is not at a minimum of J. "
                f"{_REMEDY} A damping above {-values[0]:.3g} would do."
            )
        if values[0] <= zero:
            raise InvalidInput(
                f"The {_NAMES[kind]} must be invertible, got a smallest eigenvalue of "
                f"{values[0]:.3g} beside a largest of {values[-1]:.3g}: some direction of φ "
                "changes nothing. Add `damping`, a smaller beta (more regulariser), or drop "
                "parameters that do the same."
            )
        return cho_factor(matrix)

    def _iterated(self, right: FloatArray, callback: Callback) -> tuple[FloatArray, Status]:
        c, products, kind = self.curvature, 0, self.phi.dtype
        product = getattr(self.programs, c.kind)

        def apply(v: FloatArray) -> FloatArray:
            nonlocal products
            products += 1
            callback(Progress(min(1.0, products / c.steps)))
            v = v.ravel()
            ahead = product(self.phi, jnp.asarray(v, kind), self.rows, self.strength)
            result = np.asarray(ahead, float) + c.damping * v
            bend = float(v @ result)
            if math.isnan(bend):
                raise _not_finite()
            if bend <= 0 and v.any():
                raise InvalidInput(
                    f"The {_NAMES[c.kind]} must be positive definite, got a curvature of "
                    f"{bend / float(v @ v):.3g} in a direction of the search (step {products}): φ "
                    f"is not at a minimum of J, or the curvature is singular. {_REMEDY}"
                )
            return result

        operator = LinearOperator((len(right),) * 2, matvec=apply, dtype=np.float64)
        found, code = cg(operator, right, rtol=c.tol, maxiter=c.steps)
        size = float(np.linalg.norm(right)) or 1.0
        left = float(np.linalg.norm(apply(found) - right)) / size if found.any() else 0.0
        sentence = f"Conjugate gradients took {products} products; the residual is {left:.1e}."
        if code:
            sentence += f" It is above tol = {c.tol:g}: raise `damping` or `steps`."
        return found, Status(code == 0, products, left, sentence)


_NAMES = {"hessian": "Hessian", "gauss_newton": "Gauss-Newton matrix"}


def _not_finite() -> InvalidInput:
    return InvalidInput(
        "The curvature of J must be finite, got NaN or infinity. The fit has failed, or a row is "
        "so unlikely that its density is 0: read the fit's status, and look for huge values."
    )
