"""What estimators of targets share: networks, the choice of t, the final fit."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mtbayes import _check
from mtbayes.data.stream import is_streamed
from mtbayes.errors import InvalidInput
from mtbayes.estimators import inputs
from mtbayes.estimators.base import DRAWS, ENOUGH, Robust
from mtbayes.estimators.certificate import certify
from mtbayes.estimators.choice import Choice, choose
from mtbayes.estimators.influence import Harm, forget, harm, remember
from mtbayes.estimators.progress import in_words
from mtbayes.estimators.recipe import Place, history
from mtbayes.estimators.rows import Rows, distinct
from mtbayes.estimators.scaling import Features
from mtbayes.estimators.streamed import fit_stream
from mtbayes.models import Model
from mtbayes.networks import Conv, Dense, Flatten, MaxPool, Stack, mlp
from mtbayes.posteriors import Mixture, Prior, mean_field, prior
from mtbayes.predictive import predictive
from mtbayes.theory.bounds import Bound
from mtbayes.types import Array, FloatArray, Solution

POSTERIORS: dict[str, Callable[[], Mixture]] = {
    "mean_field": mean_field,
    "mixture": lambda: Mixture(5),
}
NETWORKS = ["mlp", "cnn"]
_FEW_DRAWS = 30  # for a weight of each training row
_PRIOR = 2.0  # standard deviation of a weight, in units of 1/√inputs


class Supervised(Robust):
    """Base of the estimators of targets; the parameters are explained in each of them."""

    _risks: ClassVar[tuple[str, ...]]
    """Losses that `certify` can bound, the usual one first."""

    def __init__(
        self,
        m: int = 10,
        t: float | str = "auto",
        t_p: float = 1.0,
        beta: float | str = "auto",
        network: Any = "mlp",
        hidden: tuple[int, ...] = (50, 50),
        posterior: str = "mean_field",
        epochs: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 0.01,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.m = m
        self.t = t
        self.t_p = t_p
        self.beta = beta
        self.network = network
        self.hidden = hidden
        self.posterior = posterior
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Images have three axes and more."""
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = self._takes_images()
        return tags

    # What a subclass says.

    @abstractmethod
    def _likelihood(self) -> Any:
        """The likelihood, whose outputs the network must have."""

    @abstractmethod
    def _fit_rows(
        self, x: Any, y: Any, sample_weight: Any, place: Place, classes: Any = None
    ) -> None:
        """Learn from rows in memory; classes: the labels there are, where y may lack some."""

    @abstractmethod
    def _targets(self, y: Array) -> Array:
        """A user's targets as the likelihood takes them."""

    @abstractmethod
    def _coded(self, y: Array) -> Array:
        """Targets that `_fit` takes as the likelihood takes them."""

    @abstractmethod
    def _told(self, found: Any) -> FloatArray:
        """A calibrated predictive as numbers in the user's units, a row each."""

    @abstractmethod
    def _no_law(self, rows: Rows) -> Any:
        """The law when rows are too few to learn one."""

    # Fitting.

    def _fit_any(self, x: Any, y: Any, sample_weight: Any, place: Place) -> None:
        """Learn from rows in memory or elsewhere."""
        self._check_parameters()
        learn = partial(fit_stream, self) if is_streamed(x) else self._fit_rows
        learn(x, y, sample_weight, place)

    def _fit(self, x: Array, y: Array, sample_weight: Any, place: Place) -> None:
        """Learn from checked rows; y as the user gave it, in one shape."""
        weight = inputs.weights(sample_weight, x)
        remember(self, x, y, weight)
        rows, inverse = distinct(x, y, weight)
        warm = self.warm_start and hasattr(self, "state_")
        if not warm:
            self._begin(rows)
        elif self._model(rows.x.shape[1:]) != self.model_:
            raise InvalidInput(
                "X must have the columns, and network and hidden the values, of the first fit when "
                "warm_start=True. Set warm_start=False to start anew."
            )
        rows = Rows(self.features_.apply(rows.x), self._coded(rows.y), rows.weight)
        start = jax.tree.map(jnp.asarray, self.state_) if warm else None
        self._tell_about(x, y, inverse, *self._learn(rows, place, start))

    def _begin(self, rows: Rows) -> None:
        """Set the units, and the network for them."""
        self.features_ = Features.of(rows.x, rows.weight)
        self.input_shape_ = rows.x.shape[1:]
        self._rebuild()

    def _rebuild(self) -> None:
        """The model, from parameters and what `_begin` has set."""
        self.model_ = self._model(self.input_shape_)

    def _model(self, shape: tuple[int, ...]) -> Model:
        return Model(self._network(shape), self._likelihood())

    def _learn(
        self, rows: Rows, place: Place, start: Any
    ) -> tuple[dict[str, FloatArray], FloatArray]:
        """Choose t, and fit all rows with it; what is known about each row, and its weight."""
        key = jax.random.key(check_random_state(self.random_state).randint(2**31))
        recipe = self._recipe(len(rows.y), self._prior())._replace(mesh=place.mesh)
        candidates = self._candidates
        with self._bar() as tell:
            chosen: Choice | None = None
            if len(rows.y) >= ENOUGH:
                chosen = choose(
                    recipe,
                    rows,
                    candidates,
                    jax.random.fold_in(key, 0),
                    place=place,
                    tell=lambda share: tell(0.6 * share),
                )
            t = candidates[0] if chosen is None else chosen.t
            solution = recipe.settled(
                rows,
                t,
                jax.random.fold_in(key, 1),
                start=start,
                place=place,
                callback=lambda p: tell(0.6 + 0.4 * p.share, in_words(p.terms)),
            )
        self.t_ = t
        self._keep(solution)
        self.members_ = np.asarray(jax.random.key_data(jax.random.fold_in(key, 2)))
        self.score_path_ = [] if chosen is None else chosen.table
        self.law_ = self._no_law(rows) if chosen is None else chosen.law
        unseen = self._raw(rows.x) if chosen is None else chosen.unseen
        self.contamination_ = self.law_.contamination(unseen, rows.y, rows.weight)
        return self._judged(unseen, rows.y), self._pull(rows)

    def _keep(self, solution: Solution) -> None:
        """What the final fit has found."""
        if not solution.status.converged:
            warnings.warn(str(solution.status), ConvergenceWarning, stacklevel=5)
        self.status_ = str(solution.status)
        self.history_ = history(solution)
        self.state_ = jax.tree.map(np.asarray, solution.state)

    def _pull(self, rows: Rows) -> FloatArray:
        """p^(1-t) of each row, what a fit multiplies its gradient with; the largest is 1."""
        log_prob = self._raw(rows.x, draws=_FEW_DRAWS).log_prob(rows.y)
        return np.exp((1 - self.t_) * (log_prob - log_prob.max()))

    def _judged(self, unseen: Any, y: Array) -> dict[str, FloatArray]:
        """Attributes that tell of rows with targets y, by a predictive that has not seen them."""
        return {
            "outlier_probability_": self.law_.outlier_probability(unseen, y),
            "suspicion_": self.law_.at(0.5).outlier_probability(unseen, y),
            "held_out_": self._told(self.law_.calibrated(unseen)),
        }

    def _tell_about(
        self, x: Array, y: Array, inverse: Array, judged: dict[str, FloatArray], weight: FloatArray
    ) -> None:
        """What is known about the training rows, in the order they came in."""
        told = {name: values[inverse] for name, values in judged.items()}
        told["row_weight_"] = weight[inverse]
        left_out = inverse < 0
        if left_out.any():  # rows of weight 0: no fit has seen them
            raw = self._raw(self.features_.apply(x[left_out]))
            for name, values in self._judged(raw, self._coded(y[left_out])).items():
                told[name][left_out] = values
            told["row_weight_"][left_out] = 0.0
        for name, values in told.items():
            setattr(self, name, values)

    def _go_on(self, x: Array, y: Array, sample_weight: Any) -> None:
        """More rows: judged by the posterior so far, which then is their prior."""
        weight = inputs.weights(sample_weight, x)
        forget(self)
        merged, inverse = distinct(x, y, weight)
        rows = Rows(self.features_.apply(merged.x), self._coded(merged.y), merged.weight)
        raw = self._raw(rows.x)
        recipe = self._recipe(len(rows.y), self._posterior_as_prior())
        self.contamination_ = self.law_.contamination(raw, rows.y, rows.weight)
        judged = self._judged(raw, rows.y)
        solution = recipe.fit(
            rows,
            self.t_,
            check_random_state(self.random_state).randint(2**31),
            epochs=max(1, recipe.epochs // 3),
            pace=0.3,
            start=jax.tree.map(jnp.asarray, self.state_),
        )
        self.state_ = jax.tree.map(np.asarray, solution.state)
        self._tell_about(x, y, inverse, judged, self._pull(rows))

    def _posterior(self) -> Mixture:
        return POSTERIORS[self.posterior]()

    def _prior(self) -> Prior:
        return prior(0.0, _PRIOR * self.model_.scale())

    def _posterior_as_prior(self) -> Prior:
        """One Gaussian with the posterior's means and variances."""
        mean, std = np.asarray(self.state_.mean), np.exp(np.asarray(self.state_.log_std))
        variance = np.mean(std**2, axis=0) + np.var(mean, axis=0)
        return prior(jnp.asarray(mean.mean(axis=0)), jnp.asarray(np.sqrt(variance)))

    def _network(self, shape: tuple[int, ...]) -> Any:
        outputs = self._likelihood().outputs
        if isinstance(self.network, str):
            if self.network == "mlp":
                return mlp((*shape, *self.hidden, outputs))
            return _cnn(shape, self.hidden, outputs)
        return self.network

    def influence(
        self,
        X_test: Any,
        y_test: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        draws: int = 50,
        curvature: Any = None,
    ) -> Harm:
        """Training rows ranked by the harm they do to the loss of test rows that are trusted.

        X, y, sample_weight : the rows of `fit`, needed where the estimator was loaded or copied
        draws : members by which the loss is computed
        curvature : a `mtbayes.theory.curvature.Curvature`; Gauss-Newton, damped, by default
        """
        return harm(self, (X_test, y_test), (X, y), sample_weight, draws, curvature)

    def certify(
        self,
        X: Any,
        y: Any,
        confidence: float = 0.95,
        prior_fraction: float = 0.5,
        risk: str | None = None,
        of: str = "predictor",
    ) -> Bound:
        """A number that the risk on new rows is below, with `confidence`.

        A copy of this estimator learns a prior from a part of the rows and the posterior from all
        of them; the bound is on the other part. The certificate is about `Bound.predictor`, ready
        to predict, and not about this estimator. See docs/certificates.md.

        confidence : how sure the bound is
        prior_fraction : share of the rows that the prior sees
        risk : "error", the share of wrong labels, which a classifier takes by default; or "log_t",
            the mean log_t loss, which needs t < 1. For a regressor it is of targets in units of
            their interquartile range.
        of : "predictor", what is returned with the bound; "member", one member drawn at random;
            "members", m of them as one; "ensemble", the mean over all members there are
        """
        risk = self._risks[0] if risk is None else risk
        _check.known("risk", risk, list(self._risks))
        return certify(self, X, y, confidence, prior_fraction, risk, of)

    # Input.

    def _takes_images(self) -> bool:
        return not (isinstance(self.network, str) and self.network == "mlp")

    def _checked(self, x: Any, *targets: Any, reset: bool, **options: Any) -> Any:
        """X, or X and y, by scikit-learn's rules; images get an axis for their channels."""
        images = self._takes_images()
        if targets:
            options["y"] = targets[0]
        rows, *rest = inputs.checked(self, x, images=images, reset=reset, **options)
        if images and isinstance(self.network, str) and rows.ndim == 3:
            rows = rows[..., None]
        return (rows, *rest) if rest else rows

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check.ordinary(self.t_p, "t_p", "1 is the KL divergence.")
        _check.known("posterior", self.posterior, list(POSTERIORS))
        if isinstance(self.network, str):
            _check.known("network", self.network, NETWORKS)
        elif not hasattr(self.network, "unravel"):
            raise InvalidInput(
                f"network must be 'mlp', 'cnn' or a network of mtbayes.networks, got "
                f"{self.network!r}."
            )
        if not isinstance(self.hidden, (tuple, list)):
            raise InvalidInput(
                f"hidden must list the units of each hidden layer, got {self.hidden!r}. Try (50,)."
            )
        for units in self.hidden:
            _check.count(units, "hidden", "It lists the units of each hidden layer: (50, 50).")

    # Predicting.

    def _raw(self, x: Array, draws: int = DRAWS) -> Any:
        """The predictive in the network's units, not calibrated."""
        return predictive(
            self.model_,
            self._posterior(),
            jax.tree.map(jnp.asarray, self.state_),
            x,
            key=jax.random.wrap_key_data(jnp.asarray(self.members_)),
            draws=draws,
        )

    def _predictive(self, x: Any) -> Any:
        """The calibrated predictive of a user's rows, in the network's units."""
        check_is_fitted(self)
        rows = self._checked(x, reset=False)
        return self.law_.calibrated(self._raw(self.features_.apply(rows)))


def _cnn(shape: tuple[int, ...], hidden: tuple[int, ...], outputs: int) -> Stack:
    """The paper's two convolutions, as far as the image has room for them."""
    if len(shape) != 3 or min(shape[:2]) < 8:
        raise InvalidInput(
            f"X must hold images [n, height, width(, channels)] of at least 8 x 8 for "
            f"network='cnn', got rows of shape {shape}. Reshape X, or use network='mlp'."
        )
    features: tuple[Any, ...] = (Conv(8, 3), MaxPool(2), Conv(4, 2), MaxPool(2), Flatten())
    return Stack(shape, (*features, *(Dense(u) for u in hidden), Dense(outputs, "linear")))
