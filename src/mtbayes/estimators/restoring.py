"""What a file holds as an estimator, once every shape is seen to be what its settings imply.

A checksum tells that a file was not changed by accident. It does not tell that somebody who wrote
another one meant well, or knew how.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbayes._values import must, must_be_array
from mtbayes.fitting import Fitted, Judgement
from mtbayes.fitting.crowd import LabelCrowd
from mtbayes.fitting.ratings import NumberCrowd
from mtbayes.fitting.units import Columns, Features, Labels, Targets
from mtbayes.laws import WrongLabels, WrongPoints, WrongTargets

_BESIDE = {"fitted_", "n_features_in_", "feature_names_in_", "sampled_", "coder_", "crowd_"}
"""What an estimator may have beside its parameters."""

Shape = tuple[int, ...]


def restored(estimator: Any, state: dict[str, Any]) -> Any:
    """The estimator with what a file holds, refused unless all of it fits together."""
    settings = set(estimator.get_params(deep=False))
    strange = sorted(set(state) - settings - _BESIDE)
    must(not strange, f"it has {strange[:3]}, which no {type(estimator).__name__} has")
    must(settings | {"fitted_"} <= set(state), "parameters or what was fitted is missing")
    for key, value in state.items():
        setattr(estimator, key, value)
    estimator.check_parameters()
    fitted = estimator.fitted_
    must(isinstance(fitted, Fitted), "what was fitted is something else")
    shape: Shape = getattr(fitted.learner, "row_shape", ())  # of trees any
    columns: Any = state.get("n_features_in_", 0 if len(shape) > 1 else None)  # images have none
    must(isinstance(columns, int) and columns >= 0, "columns")
    shape = shape or (columns,)
    must(len(shape) > 1 or columns == shape[0] > 0, "columns")
    names = state.get("feature_names_in_")
    must(names is None or (np.ndim(names) == 1 and len(names) == columns), "names of columns")
    coder = state.get("coder_")
    must(coder is None or len(coder.features) == columns, "columns of data frames")
    _check_fitted(fitted, shape, type(estimator).__name__)
    crowd = state.get("crowd_")
    if crowd is not None:
        must(type(crowd) is _CROWDS.get(type(estimator).__name__), "what people said")
        said = fitted.training
        crowd.check(None if said is None else len(said.outlier_probability))
    return estimator


def _check_fitted(fitted: Fitted, shape: Shape, name: str) -> None:
    units, law, key = fitted.units, fitted.law, fitted.key
    kinds = _KINDS[name]
    found = (type(units.features), type(units.targets), type(law))
    must(found in kinds, f"{name} has {[kind.__name__ for kind in found]}")
    must(isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (2,), "the key")
    classes = len(units.targets.classes) if isinstance(units.targets, Labels) else 0
    for part in units:
        part.check(shape)
    law.check(shape, classes)
    fitted.learner.check(fitted.state, shape, classes)
    must(0 <= fitted.t <= 1, "t")
    for table in (fitted.score_path, fitted.history):
        must(all(isinstance(entry, dict) for entry in table), "tables of scores")
    if fitted.training is not None:
        width = 0 if isinstance(units.targets, Columns) else classes or 2
        _check_judgement(fitted.training, width)
    rows = len(fitted.training.outlier_probability) if fitted.training is not None else None
    for beside in (fitted.row_weight, fitted.marks):
        must(beside is None or rows is None or beside.shape == (rows,), "what is said of rows")


_KINDS: dict[str, list[tuple[type, type, type]]] = {
    "RobustClassifier": [(Features, Labels, WrongLabels)],
    "RobustRegressor": [(Features, Targets, WrongTargets)],
    "RobustDensity": [(Columns, Columns, WrongPoints)],
}
"""By estimator: kinds of the features' units, of the targets' and of the law."""
_CROWDS = {"RobustClassifier": LabelCrowd, "RobustRegressor": NumberCrowd}


def _check_judgement(said: Judgement, width: int) -> None:
    n = len(said.outlier_probability)
    for probability in (said.outlier_probability, said.suspicion, said.support):
        if probability is not None:
            must_be_array(probability, (n,), "judgements")
            must(bool(np.all((probability >= 0) & (probability <= 1))), "judgements")
    if width:
        must_be_array(said.prediction, (n, width), "predictions of rows")
        must(np.shape(said.alternative) == (n,), "alternatives")
