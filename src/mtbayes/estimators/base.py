"""What all estimators share: scikit-learn's conventions, the criterion's parameters, files."""

from __future__ import annotations

from abc import ABC
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mtbayes import _check
from mtbayes.errors import InvalidInput
from mtbayes.estimators import inputs
from mtbayes.estimators.files import save
from mtbayes.fitting import Fitted
from mtbayes.learners.network import NetworkLearner
from mtbayes.progress import Callback, bar

TRUST = 50.0
"""beta by m, where it is left to us."""


def shown(*names: str) -> Any:
    """A field of what was fitted, or of a part of it, under a name of scikit-learn's kind."""

    def get(self: Any) -> Any:
        check_is_fitted(self, "fitted_")
        value = self.fitted_
        for name in names:
            value = getattr(value, name)
        return value

    return property(get)


class Robust(BaseEstimator, ABC):
    """Base of the estimators; the parameters are explained in each of them.

    `fitted_` holds what was learned; the other attributes show it.
    """

    m: int | str
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
    t_p: float = 1.0
    fitted_: Fitted

    t_ = shown("t")
    law_ = shown("law")
    contamination_ = shown("contamination")
    outlier_probability_ = shown("training", "outlier_probability")
    row_weight_ = shown("row_weight")
    score_path_ = shown("score_path")
    history_ = shown("history")
    status_ = shown("status")

    def _candidates(self, below: float | None = None) -> tuple[float, ...]:
        """Values of t to choose from, those below a number if one is given, or the t that is."""
        if self.t != "auto":
            return (float(self.t),)
        return tuple(t for t in self._path if below is None or t < below)

    def _by_gradients(
        self, model: Any, posterior: Any, m: int, width: float, trust: float = TRUST
    ) -> NetworkLearner:
        """The learner of a model whose parameters have a posterior.

        width: of the prior; trust: beta by m, where it is not given
        """
        return NetworkLearner(
            model,
            posterior,
            m,
            float(self.t_p),
            trust * m if is_auto(self.beta) else float(self.beta),
            None if is_auto(self.epochs) else int(self.epochs),
            int(self.batch_size),
            float(self.learning_rate),
            joint=m > 1,
            width=width,
        )

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    def checked(self, x: Any, *, reset: bool, **options: Any) -> Any:
        """X by scikit-learn's rules."""
        return inputs.checked(self, x, images=False, reset=reset, **options)[0]

    def check_parameters(self) -> None:
        """Refuse parameters that no fit can take."""
        if not is_auto(self.m):
            _check.members(self.m, infinite=False)
        if not is_auto(self.t):
            _check.fraction(self.t, "t", f"'auto' chooses it; {_check.T_REMEDY}")
        if not is_auto(self.beta):
            _check.ordinary(self.beta, "beta", "'auto' chooses it; larger trusts the prior less.")
        if not is_auto(self.epochs):
            _check.count(self.epochs, "epochs", "'auto' goes by the number of rows.")
        _check.count(self.batch_size, "batch_size", "128 is the default.")
        _check.ordinary(self.learning_rate, "learning_rate", "0.01 is the default.", most="1")

    def _bar(self) -> AbstractContextManager[Callback]:
        """A context whose callback shows progress where `verbose` asks for that."""
        return bar(type(self).__name__, shown=bool(self.verbose))

    def save(self, path: Any) -> None:
        """Write the fitted estimator to one file, to be read by `mtbayes.load`.

        The file holds arrays and JSON; it is written whole or not at all.
        """
        check_is_fitted(self)
        if Path(path).is_dir():
            raise InvalidInput(f"path must be a file, got the folder {path}. Add a file's name.")
        save(self, path)


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to us."""
    return isinstance(value, str) and value == "auto"
