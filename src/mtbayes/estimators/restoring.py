"""What a file holds as an estimator, once every shape is seen to be what its settings imply.

A checksum tells that a file was not changed by accident. It does not tell that somebody who wrote
another one meant well, or knew how.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from mtbayes.errors import InvalidInput
from mtbayes.fitting import Fitted, Judgement
from mtbayes.fitting.units import Columns, Features, Labels, Targets
from mtbayes.laws import WrongLabels, WrongPoints, WrongTargets
from mtbayes.learners.boosting import BoostingLearner
from mtbayes.learners.cloud import CloudLearner
from mtbayes.learners.forest import ForestLearner
from mtbayes.learners.grove import Grove
from mtbayes.learners.network import NetworkLearner
from mtbayes.learners.pool import Pool
from mtbayes.models import Model

_BESIDE = {"fitted_", "n_features_in_", "feature_names_in_", "sampled_", "coder_"}
"""What an estimator may have beside its parameters."""

Shape = tuple[int, ...]


def restored(estimator: Any, state: dict[str, Any]) -> Any:
    """The estimator with what a file holds, refused unless all of it fits together."""
    settings = set(estimator.get_params(deep=False))
    strange = sorted(set(state) - settings - _BESIDE)
    _must(not strange, f"it has {strange[:3]}, which no {type(estimator).__name__} has")
    _must(settings | {"fitted_"} <= set(state), "parameters or what was fitted is missing")
    for key, value in state.items():
        setattr(estimator, key, value)
    estimator.check_parameters()
    fitted = estimator.fitted_
    _must(isinstance(fitted, Fitted), "what was fitted is something else")
    shape = row_shape(fitted.learner)
    columns: Any = state.get("n_features_in_", 0 if len(shape) > 1 else None)  # images have none
    _must(isinstance(columns, int) and columns >= 0, "columns")
    shape = shape or (columns,)
    _must(len(shape) > 1 or columns == shape[0] > 0, "columns")
    names = state.get("feature_names_in_")
    _must(names is None or (np.ndim(names) == 1 and len(names) == columns), "names of columns")
    coder = state.get("coder_")
    _must(coder is None or len(coder.features) == columns, "columns of data frames")
    _check_fitted(fitted, shape, type(estimator).__name__)
    return estimator


def _check_fitted(fitted: Fitted, shape: Shape, name: str) -> None:
    units, law, key = fitted.units, fitted.law, fitted.key
    kinds = _KINDS[name]
    found = (type(units.features), type(units.targets), type(law))
    _must(found in kinds, f"{name} has {[kind.__name__ for kind in found]}")
    _must(isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (2,), "the key")
    classes = len(units.targets.classes) if isinstance(units.targets, Labels) else 0
    for part in units:
        check_units(part, shape)
    check_law(law, shape, classes)
    check_state(fitted.learner, fitted.state, shape, classes)
    _must(0 <= fitted.t <= 1, "t")
    for table in (fitted.score_path, fitted.history):
        _must(all(isinstance(entry, dict) for entry in table), "tables of scores")
    if fitted.training is not None:
        width = 0 if isinstance(units.targets, Columns) else classes or 2
        _check_judgement(fitted.training, width)
    rows = len(fitted.training.outlier_probability) if fitted.training is not None else None
    for beside in (fitted.row_weight, fitted.marks):
        _must(beside is None or rows is None or beside.shape == (rows,), "what is said of rows")


_KINDS: dict[str, list[tuple[type, type, type]]] = {
    "RobustClassifier": [(Features, Labels, WrongLabels)],
    "RobustRegressor": [(Features, Targets, WrongTargets)],
    "RobustDensity": [(Columns, Columns, WrongPoints)],
}
"""By estimator: kinds of the features' units, of the targets' and of the law."""


def _check_judgement(said: Judgement, width: int) -> None:
    n = len(said.outlier_probability)
    for probability in (said.outlier_probability, said.suspicion, said.support):
        if probability is not None:
            _array(probability, (n,), "judgements")
            _must(bool(np.all((probability >= 0) & (probability <= 1))), "judgements")
    if width:
        _array(said.prediction, (n, width), "predictions of rows")
        _must(np.shape(said.alternative) == (n,), "alternatives")


@singledispatch
def row_shape(learner: Any) -> Shape:
    """The shape of a row that a learner takes; () where it takes any."""
    return ()


@row_shape.register
def _(learner: NetworkLearner) -> Shape:
    model: Any = learner.model
    if isinstance(model, Model):
        network: Any = model.network
        shape = network.input_shape
    else:
        shape = (model.dimensions,)
    _must(shape and all(isinstance(side, int) and side > 0 for side in shape), "a row's shape")
    return tuple(shape)


@row_shape.register
def _(learner: CloudLearner) -> Shape:
    return row_shape(learner.inner)


@singledispatch
def check_units(units: Any, shape: Shape) -> None:
    """Units fit rows of a shape."""
    raise InvalidInput(f"units must be of mtbayes, got {type(units).__name__}.")


@check_units.register(Features)
@check_units.register(Columns)
def _(units: Any, shape: Shape) -> None:
    for values in units:
        _array(values, (shape[-1],), "units of columns")
    _must(bool(np.all(units.scale > 0)), "units of columns")


@check_units.register
def _(units: Targets, shape: Shape) -> None:
    _must(np.isfinite(units.centre) and 0 < units.scale < np.inf, "units of the target")


@check_units.register
def _(units: Labels, shape: Shape) -> None:
    classes = units.classes
    _must(classes.ndim == 1 and len(classes) > 1, "classes")
    _must(len(set(classes.tolist())) == len(classes), "classes")
    _must(classes.tolist() == np.sort(classes).tolist(), "classes")


@singledispatch
def check_law(law: Any, shape: Shape, classes: int) -> None:
    """A law of wrong rows fits classes, or rows of a shape."""
    raise InvalidInput(f"the law must be of mtbayes, got {type(law).__name__}.")


@check_law.register
def _(law: WrongLabels, shape: Shape, classes: int) -> None:
    _must(0 <= law.epsilon <= 1 and 0 < law.temperature < np.inf, "the law of wrong labels")
    _must(0 <= law.surprise < 1 - 1 / max(classes, 2), "the law of wrong labels")
    if law.confusion is not None:
        _array(law.confusion, (classes, classes), "the law of wrong labels")


@check_law.register
def _(law: WrongTargets, shape: Shape, classes: int) -> None:
    _array(law.shares, (4,), "the law of wrong targets")
    _must(bool(np.all(law.shares >= 0)) and law.centres.ndim == 1, "the law of wrong targets")
    positive = law.scale > 0 and law.width > 0 and law.freedom > 0
    _must(positive and law.low <= law.high, "the law of wrong targets")


@check_law.register
def _(law: WrongPoints, shape: Shape, classes: int) -> None:
    for values in (law.low, law.high, law.centre):
        _array(values, shape, "the law of wrong rows")
    _must(law.scale > 0 and 0 <= law.epsilon <= 1, "the law of wrong rows")


@singledispatch
def check_state(learner: Any, state: Any, shape: Shape, classes: int) -> None:
    """A state is one that a learner can have ended in."""
    raise InvalidInput(f"the learner must be of mtbayes, got {type(learner).__name__}.")


@check_state.register
def _(learner: NetworkLearner, state: Any, shape: Shape, classes: int) -> None:
    _must(row_shape(learner) == shape, "columns of the network")
    _must(isinstance(state, learner.posterior.state), "the posterior's parameters")
    if isinstance(learner.model, Model):
        network: Any = learner.model.network
        outputs = learner.model.likelihood.outputs
        _must(not classes or outputs == classes, "outputs of the network")
        _must(network.layers[-1].units == outputs, "outputs of the network")
    modes, size = learner.posterior.components, learner.model.size
    for values in state:
        _array(values, None, "the posterior's parameters")
    _must(state.mean.shape == (modes, size), "the posterior's parameters")
    for values in state[1:]:
        _must(values.shape[:1] == (modes,) or values.shape == state.mean.shape, "the posterior")


@check_state.register
def _(learner: CloudLearner, state: Any, shape: Shape, classes: int) -> None:
    check_state(learner.inner, state, shape, classes)


@check_state.register
def _(learner: Pool, state: Any, shape: Shape, classes: int) -> None:
    _must(isinstance(state, tuple) and len(state) == len(learner.parts), "parts of the pool")
    for part, own in zip(learner.parts, state, strict=True):
        check_law(part.law, shape, classes)
        check_state(part.learner, own, shape, classes)


@check_state.register
def _(learner: ForestLearner, state: Any, shape: Shape, classes: int) -> None:
    _must(learner.classes == classes, "classes of the forest")
    _check_trees(state.grove, shape, classes or 2)
    _check_groups(state.group, state.grove, None)
    _array(state.shares, (classes,), "shares of the classes")


@check_state.register
def _(learner: BoostingLearner, state: Any, shape: Shape, classes: int) -> None:
    _must(learner.classes == classes and state.folds > 0, "classes of boosted trees")
    scores = classes if classes > 2 else 1
    _check_trees(state.grove, shape, 1)
    _check_groups(state.group, state.grove, state.folds * scores)
    _must((state.spread is None) == bool(classes), "boosted trees")
    if state.spread is not None:
        grove, group = state.spread
        _check_trees(grove, shape, 1)
        _check_groups(group, grove, state.folds)


def _check_trees(grove: Any, shape: Shape, width: int) -> None:
    _must(isinstance(grove, Grove), "trees")
    grove.check(shape[0])
    _must(grove.value.shape[1] == width, "what leaves say")


def _check_groups(group: Any, grove: Grove, groups: int | None) -> None:
    """Each tree is of a group; groups: how many; none may be empty where nobody says how many."""
    _must(isinstance(group, np.ndarray) and group.dtype.kind == "i", "groups of trees")
    _must(group.shape == grove.root.shape and group.min() >= 0, "groups of trees")
    if groups is None:
        _must(bool(np.bincount(group).all()) and group.max() < len(group), "groups of trees")
    else:
        _must(group.max() < groups, "groups of trees")


def _array(values: Any, shape: Shape | None, what: str) -> None:
    plain = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    _must(plain and (shape is None or values.shape == shape), what)


def _must(holds: Any, what: str) -> None:
    if not holds:
        raise InvalidInput(f"what it holds does not fit together: {what}")
