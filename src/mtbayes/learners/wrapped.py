"""Any estimator of scikit-learn's kind that takes weights, by majorise and minimise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, signature
from traceback import walk_tb
from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import entr
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from mtbayes.errors import InvalidInput
from mtbayes.learners import MEMBERS, Crossing, Place
from mtbayes.learners.folds import class_shares, log_density, middle_width, pull, seed_of
from mtbayes.learners.frame import Frame, as_given
from mtbayes.maths import draws
from mtbayes.predictives import ClassPredictive, GaussianPredictive, in_order
from mtbayes.progress import Progress
from mtbayes.types import Array, FloatArray, Rows

_BLUR = 0.01  # of what an estimator says, the shares of the classes: no class is impossible
_SLIP = 1e-3  # by which probabilities may miss their sum, as in single precision

_CODED = (
    "Put OneHotEncoder(handle_unknown='ignore', sparse_output=False) before it in make_pipeline"
)
_CHOSEN = "Say which columns are for which step, by make_column_transformer"
# By the words of scikit-learn that they answer.
_REMEDIES = {
    "Sparse data": "Set sparse_output=False in OneHotEncoder, or sparse_threshold=0 in "
    "ColumnTransformer",
    "NaN": "Put SimpleImputer() before it in make_pipeline",
    "unknown categories": "Set handle_unknown='ignore' in OneHotEncoder; in OrdinalEncoder "
    "'use_encoded_value', and unknown_value=-1",
}


@dataclass(frozen=True, eq=False)
class Wrapped:
    """A user's own estimator, cloned for each fit.

    classes: how many; 0 for numbers
    """

    estimator: Any
    classes: int
    threaded = False  # nobody knows what a user's own does

    @property
    def name(self) -> str:
        """That of its class, or of a pipeline's last step."""
        return type(_last(self.estimator)).__name__

    def crossed(
        self, rows: Rows, fold: Array, t: float, key: Array, *, place: Place = Place()
    ) -> Crossing:
        """A fit for each fold's other rows; at t < 1 with weights by fits without two folds."""
        folds, n = int(fold.max()) + 1, len(rows.y)

        def at(t: float, inner: FloatArray | None, place: Place) -> Crossing:
            share = 0.0
            if t < 1 and inner is None:
                share = (folds - 1) / (folds + 1)
                inner = self._inner(rows, fold, key, place.part(0.0, share))
            weight = rows.weight * np.broadcast_to(pull(inner, t, rows.trusted), (folds, n))
            here = place.part(share, 1 - share)
            fits = []
            for k in range(folds):
                fits.append(self._fitted(rows, weight[k], fold != k, draws.child(key, k, k)))
                here.callback(Progress((k + 1) / folds, f"{self.name} at t = {t:g}"))
            said = [
                self._answer(f, rows.x[fold == k], self._shares(rows.take(fold != k)))
                for k, f in enumerate(fits)
            ]
            unseen = in_order([self._predictive([a], 1.0) for a in said], fold)
            spread = 1.0
            if not self.classes:
                spread = middle_width(np.asarray(rows.y, float) - unseen.mean, rows.weight)
                unseen = GaussianPredictive(unseen.means, np.full_like(unseen.stds, spread))
            state = tuple(fits), self._shares(rows), spread
            return Crossing(t, unseen, lambda _: state, at, None, "Fitted.")

        return at(t, None, place)

    def predictive(self, state: Any, x: Array, key: Array, members: int = MEMBERS) -> Any:
        """The mean over the fits; of numbers without their dispute.

        How wide numbers lie is told by fits that have not seen them, each alone: the dispute is in
        that already. With the fits as members, rows that are new were told too widely after deep
        trees, and where fits dispute, errors were hardly larger.
        """
        fits, shares, spread = state
        said = [self._answer(f, x, shares) for f in fits]
        return self._predictive(said, spread)

    def check(self, state: Any, shape: tuple[int, ...], classes: int) -> None:
        """Estimators of others are not in files."""
        raise InvalidInput("a file cannot hold an estimator of one's own.")

    def _inner(self, rows: Rows, fold: Array, key: Array, place: Place) -> FloatArray:
        """Log probability of each row by fits that have seen neither it nor fold k, [folds, n]."""
        folds = int(fold.max()) + 1
        pairs = [(k, other) for k in range(folds) for other in range(k)]
        known = np.zeros((folds, len(rows.y)))
        for i, (k, other) in enumerate(pairs):
            out = (fold == k) | (fold == other)
            fit = self._fitted(rows, rows.weight, ~out, draws.child(key, k, other))
            shares = self._shares(rows.take(~out))
            said = self._predictive([self._answer(fit, rows.x[out], shares)], 1.0)
            logs = self._log_prob(said, rows.y[out], rows.weight[out])
            known[k, fold == other] = logs[fold[out] == other]
            known[other, fold == k] = logs[fold[out] == k]
            place.callback(Progress((i + 1) / len(pairs), f"{self.name} without two folds"))
        return known

    def _fitted(self, rows: Rows, weight: FloatArray, which: Array, key: Array) -> Any:
        if self.classes and len(np.unique(rows.y[which])) < 2:
            raise InvalidInput(
                "y must hold two classes in every four fifths of the rows, got one. Add rows of "
                "the rare classes, or leave learner to 'auto'."
            )
        found = _made_dense(_seeded(self.estimator, seed_of(key)))
        x, y = as_given(rows.x[which]), rows.y[which]
        with _told(self.estimator, rows.x):
            return found.fit(x, y, **_weighted(found, weight[which]))

    def _shares(self, rows: Rows) -> FloatArray:
        return class_shares(rows.y, rows.weight, self.classes) if self.classes else np.empty(0)

    def _answer(self, fit: Any, x: Array, shares: FloatArray) -> FloatArray:
        """Probabilities of all classes [n, C], or numbers [n]."""
        with _told(self.estimator, x):
            answer = (fit.predict_proba if self.classes else fit.predict)(as_given(x))
        if not self.classes:
            return _checked(self.name, answer, (len(x),))
        known = np.asarray(fit.classes_, int)
        said = np.zeros((len(x), self.classes))
        said[:, known] = _checked(self.name, answer, (len(x), len(known)))
        return (1 - _BLUR) * said + _BLUR * shares

    def _predictive(self, said: list[FloatArray], spread: float) -> Any:
        mean = np.mean(said, axis=0)
        if not self.classes:
            return GaussianPredictive(mean[None], np.full((1, len(mean)), spread))
        probs = np.stack(said)
        return ClassPredictive(np.log(mean), entr(probs).sum(axis=2).mean(axis=0))

    def _log_prob(self, said: Any, y: Array, weight: FloatArray) -> FloatArray:
        if self.classes:
            return np.asarray(said.log_prob(y))
        return log_density(np.asarray(y, float) - said.mean, weight)


def _seeded(estimator: Any, seed: int) -> Any:
    """A clone that draws by a seed, in all its parts; seeds that a user set stay."""
    found, draw = clone(estimator), np.random.RandomState(seed)
    left = sorted(
        name
        for name, value in found.get_params().items()
        if value is None and name.rpartition("__")[2] == "random_state"
    )
    return found.set_params(**{name: int(draw.randint(2**31 - 1)) for name in left})


def check_wrapped(estimator: Any, *, classes: bool) -> None:
    """Refuse what cannot be trained by weights, or says nothing of the kind that is needed."""
    name, last = type(estimator).__name__, _last(estimator)
    own = type(estimator).__module__.startswith("mtbayes.")
    if own or isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise InvalidInput(
            f"learner must be 'auto', 'network', 'linear', 'trees' or an estimator of "
            f"scikit-learn's kind, such as LogisticRegression(), got {estimator!r}."
        )
    kind, is_kind = ("classifier", is_classifier) if classes else ("regressor", is_regressor)
    if not is_kind(estimator):
        raise InvalidInput(
            f"learner must be a {kind} for these targets, got {name}. Try "
            + (
                "HistGradientBoostingClassifier()."
                if classes
                else "HistGradientBoostingRegressor()."
            )
        )
    if classes and not hasattr(estimator, "predict_proba"):
        raise InvalidInput(
            f"learner must have predict_proba, got {name}. Wrap it in CalibratedClassifierCV, or "
            "use LogisticRegression()."
        )
    if not _takes_weights(last):
        raise InvalidInput(
            f"learner must name sample_weight among the arguments of fit, or hand it on to "
            f"estimators that all do, got {type(last).__name__}. Weights are how wrong rows lose "
            f"their pull; {_taking(last)}."
        )


def _takes_weights(estimator: Any) -> bool:
    """Whether fit names sample_weight, or hands what it does not name to estimators that do."""
    if has_fit_parameter(estimator, "sample_weight"):
        return True
    kinds = [each.kind for each in signature(estimator.fit).parameters.values()]
    if Parameter.VAR_KEYWORD not in kinds or _is_pipeline(estimator):
        return False
    inner = [e for e in estimator.get_params().values() if hasattr(e, "fit") and _has_targets(e)]
    return bool(inner) and all(map(_takes_weights, inner))


def _taking(estimator: Any) -> str:
    """What to use in place of an estimator that takes no weights."""
    if any(_is_pipeline(part) for part in estimator.get_params().values()):
        name = type(estimator).__name__
        return f"put {name} into the pipeline as its last step, not the pipeline into {name}"
    other = "Classifier" if is_classifier(estimator) else "Regressor"
    return f"use RandomForest{other}() or another that takes them, or learner='auto'"


def _has_targets(estimator: Any) -> bool:
    return bool(is_classifier(estimator) or is_regressor(estimator))


def _checked(name: str, answer: Any, shape: tuple[int, ...]) -> FloatArray:
    """What an estimator says of rows: probabilities [n, classes], or numbers [n]."""
    said, how, what = np.asarray(answer, float), "predict", "finite numbers"
    if len(shape) == 2:
        how, what = "predict_proba", "probabilities that add up to 1 in each row,"
    elif said.size == shape[0]:
        said = said.reshape(shape)
    got = f"shape {said.shape}"
    if said.shape == shape:
        good = np.isfinite(said)
        if len(shape) == 2:
            good = (said >= 0).all(axis=1) & (np.abs(said.sum(axis=1) - 1) < _SLIP)
        if good.all():
            return said
        got = str(said[~good][0])
    raise InvalidInput(
        f"learner must return {what} of shape {shape} from {how}, got {got} from {name}. Mend its "
        f"{how}, or leave learner to 'auto'."
    )


@contextmanager
def _told(estimator: Any, x: Array) -> Iterator[None]:
    """Tell what to do where an estimator cannot take a user's own table."""
    try:
        yield
    except (ValueError, TypeError, ArithmeticError) as error:
        whole = str(error)
        remedies = [remedy for words, remedy in _REMEDIES.items() if words in whole]
        if not (remedies or isinstance(x, Frame)):
            raise
        said = " ".join(whole.split())[:200].rstrip(".")
        coded = "OneHotEncoder" in {part.__name__ for part in _parts(estimator)}
        raise InvalidInput(
            f"learner must take the columns of X as they are, and values that it has not seen, got "
            f"{_blamed(estimator, error)}, which says: {said}. "
            f"{[*remedies, _CHOSEN if coded else _CODED][0]}, or leave learner to 'auto', which "
            "codes columns by itself."
        ) from error


def _parts(estimator: Any) -> set[type]:
    """Classes of an estimator and of all that it is made of, but for pipelines."""
    every = (estimator, *estimator.get_params().values())
    return {type(each) for each in every if hasattr(each, "fit") and not _is_pipeline(each)}


def _blamed(estimator: Any, error: Exception) -> str:
    """The innermost part of an estimator that an error went through; clones know their class."""
    parts = _parts(estimator)
    through = [type(frame.f_locals.get("self")) for frame, _ in walk_tb(error.__traceback__)]
    found = [kind for kind in through if kind in parts]
    return found[-1].__name__ if found else type(_last(estimator)).__name__


def _made_dense(estimator: Any) -> Any:
    """A pipeline whose last step gets dense columns, where it takes no others.

    What codes categories makes sparse ones by default, and trees of scikit-learn refuse them.
    """
    several = _is_pipeline(estimator) and len(estimator.steps) > 1
    if several and not get_tags(_last(estimator)).input_tags.sparse:
        step = FunctionTransformer(_dense, accept_sparse=True)
        estimator.steps.insert(-1, ("made dense", step))
    return estimator


def _dense(x: Any) -> Any:
    sparse: bool = issparse(x)
    return x.toarray() if sparse else x


def takes_gaps(estimator: Any) -> bool:
    """Whether NaN is no error to an estimator, or to the first step of a pipeline."""
    first = estimator.steps[0][1] if _is_pipeline(estimator) else estimator
    return not hasattr(first, "fit") or bool(get_tags(first).input_tags.allow_nan)


def _is_pipeline(estimator: Any) -> bool:
    from sklearn.pipeline import Pipeline

    return isinstance(estimator, Pipeline)


def _last(estimator: Any) -> Any:
    return estimator.steps[-1][1] if _is_pipeline(estimator) else estimator


def _weighted(estimator: Any, weight: FloatArray) -> dict[str, FloatArray]:
    """The argument by which weights reach an estimator, or the last step of a pipeline."""
    if _is_pipeline(estimator):
        return {f"{estimator.steps[-1][0]}__sample_weight": weight}
    return {"sample_weight": weight}
