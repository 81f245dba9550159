"""What all estimators share: scikit-learn's manners, the criterion, files."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mtbayes import _check
from mtbayes.criteria import Criterion
from mtbayes.errors import InvalidInput
from mtbayes.estimators import inputs
from mtbayes.estimators.files import save
from mtbayes.estimators.progress import bar
from mtbayes.estimators.recipe import Recipe
from mtbayes.posteriors import Mixture, Prior

DRAWS = 100  # members of a predictive
ENOUGH = 20  # rows, below which nothing can be learned about wrong ones
_STEPS = 3000  # of a fit with epochs="auto", about
_BETA = 5.0  # beta="auto" as a multiple of m


class Robust(BaseEstimator, ABC):
    """Base of the estimators; the parameters are explained in each of them."""

    m: int
    t: float | str
    beta: float | str
    epochs: int | str
    batch_size: int
    learning_rate: float
    random_state: Any
    verbose: int

    _law: ClassVar[Any]
    """The class of the law of wrong rows."""
    _path: ClassVar[tuple[float, ...]]
    """Values of t to choose from, downwards."""
    model_: Any
    t_p: float = 1.0

    @abstractmethod
    def _rebuild(self) -> None:
        """Set the model, from parameters and what a fit has learned."""

    @abstractmethod
    def _posterior(self) -> Mixture:
        """The family of the posterior."""

    @property
    def _candidates(self) -> tuple[float, ...]:
        """Values of t to choose from, or the one that is given."""
        return self._path if self.t == "auto" else (float(self.t),)

    def _recipe(self, n: int, before: Prior) -> Recipe:
        """How n rows are fitted, beside a prior."""
        batches = -(-n // min(self.batch_size, n))
        auto = int(np.clip(math.ceil(_STEPS / batches), 10, 500))
        beta = _BETA * self.m if self.beta == "auto" else float(self.beta)
        return Recipe(
            self.model_,
            self._posterior(),
            before,
            self._law,
            lambda t: Criterion(m=self.m, t=t, beta=beta, t_p=float(self.t_p)),
            auto if self.epochs == "auto" else int(self.epochs),
            int(self.batch_size),
            float(self.learning_rate),
        )

    def _checked(self, x: Any, *, reset: bool, **options: Any) -> Any:
        """X by scikit-learn's rules."""
        return inputs.checked(self, x, images=False, reset=reset, **options)[0]

    def _check_parameters(self) -> None:
        _check.members(self.m, infinite=False)
        if not _is_auto(self.t):
            _check.fraction(self.t, "t", f"'auto' chooses it; {_check.T_REMEDY}")
        if not _is_auto(self.beta):
            _check.ordinary(self.beta, "beta", "'auto' is 5·m; larger trusts the prior less.")
        if not _is_auto(self.epochs):
            _check.count(self.epochs, "epochs", "'auto' goes by the number of rows.")
        _check.count(self.batch_size, "batch_size", "128 is the default.")
        _check.ordinary(self.learning_rate, "learning_rate", "0.01 is the default.", most="1")

    def _bar(self) -> Any:
        """A context that hears how much is done, and shows it where `verbose` asks for that."""
        return bar(type(self).__name__, shown=bool(self.verbose))

    def save(self, path: Any) -> None:
        """Write the fitted estimator to one file, to be read by `mtbayes.load`.

        The file holds arrays and JSON; it is written whole or not at all.
        """
        check_is_fitted(self)
        if Path(path).is_dir():
            raise InvalidInput(f"path must be a file, got the folder {path}. Add a file's name.")
        save(self, path)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
