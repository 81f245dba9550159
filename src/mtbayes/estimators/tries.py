"""Which learners an estimator of targets tries, and in which settings."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from sklearn.base import is_classifier

from mtbayes._files import Unfinished
from mtbayes.errors import InvalidInput
from mtbayes.estimators.base import Robust, is_auto
from mtbayes.fitting import Option
from mtbayes.learners import Place
from mtbayes.learners.boosting import BoostingLearner
from mtbayes.learners.folds import FOLDS
from mtbayes.learners.forest import ForestLearner
from mtbayes.learners.network import NetworkLearner
from mtbayes.learners.wrapped import Wrapped
from mtbayes.models import Model
from mtbayes.networks import Conv, Dense, Flatten, MaxPool, Stack, mlp
from mtbayes.posteriors import Mixture, Particles

NETWORKS = ["mlp", "cnn"]
LEARNERS = ["auto", "network", "linear", "trees"]
HEEDED = {"learner", "t", "warm_start", "random_state", "verbose"}
"""Parameters that every learner goes by; the others are those of networks."""
POOL_PATH = (1.0, 0.5, 0.2)
"""Values of t of learners that are pooled; trees, which take longer, have the first and last."""
EXTRA_TREES = ((1, True), (4, False))
"""Rows in a leaf, at least, and whether a tree sees all rows, of extra trees to choose from."""
TREE_CLASSES = 50
"""Beyond which trees do not speak by themselves: each leaf says a number for every class."""
MANY_ANSWERS = 5_000_000
"""Probabilities of all rows and classes, beyond which no linear map, whose every step takes all of
them, speaks, and networks are as few as they may be."""
LEAVES = (1, 4)
"""Rows in a leaf, at least, of forests to choose from."""
WIDTHS = (1.0, 0.3)
"""Of the prior of a network's weights, to choose from."""
IMAGE_WIDTHS = WIDTHS[1:]
"""The same for images, whose networks are dear: the wider was no better, or worse."""
LINEAR_WIDTHS = (*WIDTHS, 0.15)
"""The same without hidden units, where hundreds of columns say a little each, as those of text."""
EFFORT, FEW_EFFORT, FEW_ROWS = 0.4, 0.25, 1000
"""Of a network's training where others speak beside it; of classes, where rows are few, less."""
LAST = 0.5
"""Of the epochs of networks, those in which all modes see all rows; none where rows are few, which
modes would learn by heart."""


class TriesLearners(Robust):
    """Mixed into estimators of targets."""

    learner: Any
    network: Any
    hidden: tuple[int, ...]
    modes: int
    warm_start: bool

    _settings: ClassVar[tuple[tuple[int, int, float], ...]]
    """m, modes at most and width of the prior to choose from; the first where rows are few."""

    @abstractmethod
    def _likelihood(self, labels: Any) -> Any:
        """The likelihood, whose outputs the network must have."""

    def _learners(self, shape: tuple[int, ...], labels: Any, spread: bool) -> list[NetworkLearner]:
        """The network for rows of a shape, in the settings that are left to us.

        Several modes are points: Gaussians around them are no better and take twice as long.
        spread: Gaussians all the same
        """
        model = self._model(shape, labels)
        found = []
        for m, modes, width in self._settings:
            if not is_auto(self.m):
                m, modes = int(self.m), self.modes
            if not is_auto(self.beta):
                width = self._settings[0][2]
            k = _even(m, min(modes, self.modes))
            family = Mixture if spread or m > k or k == 1 else Particles
            learner = self._by_gradients(model, family(k), m, width)
            if learner not in found:
                found.append(learner)
        return found

    def _model(self, shape: tuple[int, ...], labels: Any, hidden: Any = None) -> Model:
        likelihood = self._likelihood(labels)
        return Model(self._network(shape, likelihood.outputs, hidden), likelihood)

    def _pools(self, place: Place) -> bool:
        """Whether several learners speak together, or one that is not a network.

        Where parameters of a network say that one ensemble is wanted, or what is left to us is
        about devices, or about numbers of images, it is a network.
        """
        if self._without_gradients():
            return True
        points = (is_auto(self.m) or int(self.m) == 1) and self.modes >= FOLDS
        anew = not self.warm_start and place.mesh is None
        known = is_classifier(self) or not self._takes_images()
        return self.learner == "auto" and points and anew and known

    def _without_gradients(self) -> bool:
        """Whether trees or a user's own estimator learn alone."""
        return _without_gradients(self.learner)

    def _tell_idle(self, *, images: bool, folder: Unfinished | None = None) -> None:
        """Warn of what was set and does nothing with the learner that was asked for.

        folder: of checkpoints
        """
        usual = type(self)().get_params(deep=False)
        given = self.get_params(deep=False).items()
        if self._without_gradients():
            heeded = HEEDED | ({"network"} if images else set())
            why, idle = "is no network", [k for k in usual if k not in heeded]
        elif self.learner == "linear" and not self._takes_images():
            why, idle = "has no hidden units", ["hidden"]
        else:
            return
        told = [f"{k}={v!r}" for k, v in given if k in idle and v != usual[k]]
        remedy = "Leave this out, or set learner='network'."
        if folder is not None and self._without_gradients():
            told.append(f"checkpoint={str(folder.folder)!r}")
            remedy += " Networks keep checkpoints, those of 'auto' and 'linear' too."
        if told:
            name = self.learner if isinstance(self.learner, str) else type(self.learner).__name__
            warnings.warn(
                f"no effect with the learner {name}, which {why}: {', '.join(told)}. {remedy}",
                UserWarning,
                stacklevel=2,
            )

    def _options(self, shape: tuple[int, ...], labels: Any) -> list[Option]:
        """Learners to pool, each with values of t, in the settings that are left to us.

        shape: of all rows
        """
        classes, (rows, *columns) = 0 if labels is None else len(labels), shape
        path, few = (
            (POOL_PATH, (POOL_PATH[0], POOL_PATH[-1]))
            if is_auto(self.t)
            else (self._candidates(),) * 2
        )
        if not isinstance(self.learner, str):
            return [Option(Wrapped(self.learner, classes), path)]
        if self._takes_images():
            own = self._model(tuple(columns), labels)
            return [self._points(own, self.modes, path, IMAGE_WIDTHS, 1.0, LAST)]
        leaves = [ForestLearner("extra trees", classes, *each) for each in EXTRA_TREES]
        others = () if classes else (BoostingLearner(0, absolute=True),)
        boosting = Option(BoostingLearner(classes), few, others)
        trees = [Option(leaves[0], few, tuple(leaves[1:])), boosting]
        if self.learner == "auto" and classes > TREE_CLASSES:
            trees = []
        if self.learner == "trees":
            forests = [ForestLearner("forest", classes, leaf) for leaf in LEAVES]
            return [*trees, Option(forests[0], few, tuple(forests[1:]))]
        hidden, linear = (self._model(tuple(columns), labels, how) for how in (None, ()))
        effort = FEW_EFFORT if classes and rows < FEW_ROWS else EFFORT
        if rows * classes > MANY_ANSWERS:
            return [self._points(hidden, FOLDS, few, WIDTHS[:1], effort), *trees]
        by_lines = self._points(linear, FOLDS, path, LINEAR_WIDTHS, effort)
        return [
            self._points(
                hidden, self.modes, path, WIDTHS, effort, LAST if rows >= FEW_ROWS else 0.0
            ),
            *([by_lines] if self.hidden else []),
            *trees,
        ]

    def _points(
        self,
        model: Model,
        modes: int,
        path: tuple[float, ...],
        widths: tuple[float, ...],
        effort: float,
        last: float = 0.0,
    ) -> Option:
        """Points of a network, each on its own and with little training, under several priors."""
        widths = widths if is_auto(self.beta) else WIDTHS[:1]
        first, *others = (
            replace(self._by_gradients(model, Particles(modes), 1, width), effort=effort, last=last)
            for width in widths
        )
        return Option(first, path, tuple(others))

    def _network(self, shape: tuple[int, ...], outputs: int, hidden: Any) -> Any:
        if isinstance(self.network, str):
            hidden = self.hidden if hidden is None else hidden
            if self.network == "mlp":
                return mlp((*shape, *(() if self.learner == "linear" else hidden), outputs))
            return _cnn(shape, hidden, outputs)
        return self.network

    def _takes_images(self) -> bool:
        return not (isinstance(self.network, str) and self.network == "mlp")


def takes_parts(estimator: Any) -> bool:
    """Whether an estimator has `partial_fit`; the reason is raised where it has none."""
    if _without_gradients(estimator.learner):
        raise InvalidInput(
            f"learner must be 'auto', 'network' or 'linear' for rows that come in parts, got "
            f"{estimator.learner!r}, which needs all rows at once."
        )
    return True


def _without_gradients(learner: Any) -> bool:
    return not isinstance(learner, str) or learner == "trees"


def _even(m: int, most: int) -> int:
    """The largest number of modes over which m members, or which over m, can be shared out."""
    return max(k for k in range(1, most + 1) if max(m, k) % min(m, k) == 0)


def _cnn(shape: tuple[int, ...], hidden: tuple[int, ...], outputs: int) -> Stack:
    """The paper's two convolutions, as far as the image has room for them."""
    if len(shape) != 3 or min(shape[:2]) < 8:
        raise InvalidInput(
            f"X must hold images [n, height, width(, channels)] of at least 8 x 8 for "
            f"network='cnn', got rows of shape {shape}. Reshape X, or use network='mlp'."
        )
    features: tuple[Any, ...] = (Conv(8, 3), MaxPool(2), Conv(4, 2), MaxPool(2), Flatten())
    return Stack(shape, (*features, *(Dense(u) for u in hidden), Dense(outputs, "linear")))
