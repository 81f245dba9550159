"""What estimators of targets share: networks, the choice of t, the final fit."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from mtbayes import _check
from mtbayes.data.sources import is_streamed, open_stream
from mtbayes.errors import InvalidInput
from mtbayes.estimators import frames, inputs
from mtbayes.estimators.annotations import Annotations
from mtbayes.estimators.base import is_auto, shown
from mtbayes.estimators.crowd import Crowded
from mtbayes.estimators.tries import LEARNERS, NETWORKS, TriesLearners, takes_parts
from mtbayes.fitting import Fitted, Judgement, Option, Units, further, learn, streamed
from mtbayes.fitting.certificate import Parts, certify, check_question
from mtbayes.fitting.harm import Harm, harm, remember
from mtbayes.fitting.units import Features, Given
from mtbayes.learners import Place
from mtbayes.learners.wrapped import check_wrapped, takes_gaps
from mtbayes.maths import draws
from mtbayes.solve.devices import Devices
from mtbayes.solve.feed import check_size
from mtbayes.theory.bounds import Bound, log_t_span
from mtbayes.types import Array, Rows


class Supervised(Crowded, TriesLearners):
    """Base of the estimators of targets; the parameters are explained in each of them."""

    _risks: ClassVar[tuple[str, ...]]
    """Losses that `certify` can bound, the usual one first."""

    state_ = shown("state")
    learner_ = shown("loudest")
    shares_ = shown("shares")
    suspicion_ = shown("training", "suspicion")
    unseen_prediction_ = shown("training", "prediction")

    def __init__(
        self,
        learner: Any = "auto",
        m: int | str = "auto",
        t: float | str = "auto",
        t_p: float = 1.0,
        beta: float | str = "auto",
        network: Any = "mlp",
        hidden: tuple[int, ...] = (50, 50),
        modes: int = 10,
        epochs: int | str = "auto",
        batch_size: int = 128,
        learning_rate: float = 0.01,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.learner = learner
        self.m = m
        self.t = t
        self.t_p = t_p
        self.beta = beta
        self.network = network
        self.hidden = hidden
        self.modes = modes
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
    def checked_rows(self, x: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        """Rows and targets by scikit-learn's rules."""

    def _labels(self, y: Array, classes: Any) -> Any:
        """All labels there are, where targets have any; classes: those that a user names."""

    @abstractmethod
    def _target_units(self, rows: Rows, labels: Any) -> Any:
        """What targets are learned in."""

    # Fitting.

    def _learn_from(self, x: Any, y: Any, sample_weight: Any, place: Place, trusted: Any) -> None:
        """Learn from rows in memory or elsewhere."""
        self.check_parameters()
        if place.folder is not None and not isinstance(self.random_state, Integral):
            raise InvalidInput(
                "random_state must be a whole number where checkpoint is given, got "
                f"{self.random_state!r}. Set it, such as random_state=0: a fit goes on only where "
                "it draws what the stopped one drew."
            )
        with self._bar() as callback:
            place = place._replace(callback=callback)
            if trusted is not None and (is_streamed(x) or place.mesh is not None):
                raise InvalidInput(
                    "trusted must be left out for rows that are streamed or shared by the devices "
                    "of a mesh. Give the rows in memory, and no mesh."
                )
            self.__dict__.pop("crowd_", None)
            if isinstance(y, Annotations):
                self._check_alone(x, place, trusted)
                self._learn_crowd(x, y, sample_weight, place)
            elif is_streamed(x):
                self._learn_stream(x, y, sample_weight, place)
            else:
                self.fitted_ = self.learned(x, y, sample_weight, place, trusted=trusted)

    def _check_alone(self, x: Any, place: Place, trusted: Any) -> None:
        """Annotations are about rows in memory, all of them as they are."""
        if is_streamed(x) or place.mesh is not None or trusted is not None or self.warm_start:
            raise InvalidInput(
                "y must be one target for each row where rows are streamed, shared by a mesh or "
                "trusted, or warm_start is True, got Annotations. Leave these out, or fit the "
                "consensus_ of a first fit."
            )

    def learned(
        self,
        x: Any,
        y: Any,
        sample_weight: Any = None,
        place: Place = Place(),
        classes: Any = None,
        below: float | None = None,
        spread: bool = False,
        alone: bool = False,
        trusted: Any = None,
    ) -> Fitted:
        """What is learned from rows in memory.

        below: which a chosen t must be; spread: whether modes must be more than points
        alone: whether a learner that can go on to more rows is needed, where that is left to us
        trusted: whether each row's target is known to be right
        """
        x, y = self.checked_rows(x, y, reset=True)
        self._tell_idle(images=len(x.shape) > 2, folder=place.folder)
        rows = Rows(x, y, inputs.weights(sample_weight, x), inputs.mask(trusted, x))
        before = self.fitted_ if self.warm_start and hasattr(self, "fitted_") else None
        labels = self._labels(y, classes)
        together = self._pools(place) and before is None
        if is_auto(self.learner):
            together = together and not (spread or alone)
        elif together and alone:
            takes_parts(self)
        options = self._options(rows.x.shape, labels) if together else []
        learners = [] if together else self._learners(rows.x.shape[1:], labels, spread)

        def units(own: Rows) -> Units:
            features = Features.of(own.x, own.weight) if isinstance(self.learner, str) else Given()
            return Units(features, self._target_units(own, labels))

        if before is not None:
            learners = [learner for learner in learners if learner == before.learner]
            if not learners:
                raise InvalidInput(
                    "X must have the columns, and the parameters of the network the values, of the "
                    "first fit when warm_start=True. Set warm_start=False to start anew."
                )
        if not together:
            first, *others = learners
            options = [Option(first, self._candidates(below), tuple(others))]
        fitted = learn(
            options,
            rows,
            units if before is None else before.units,
            self._law,
            draws.key(self._seed()),
            place,
            None if before is None else before.state,
            together,
        )
        remember(fitted, rows)
        return fitted

    def _learn_stream(self, x: Any, y: Any, sample_weight: Any, place: Place) -> None:
        """Learn from a data set, an array on disk or an iterator of record batches."""
        stream = open_stream(x, y, sample_weight)
        large = len(stream) > streamed.SAMPLE
        if len(stream) > max(streamed.SAMPLE, self.batch_size):  # said now, not after the folds
            check_size(self.batch_size, stream.lanes, Devices.of(place.mesh))
        seed = self._seed()
        which, sample, labels = streamed.survey(stream, seed, classes=is_classifier(self))
        share = 0.5 if large else 1.0
        here = place.part(0.0, share)
        fitted = self.learned(sample.x, sample.y, sample.weight, here, labels, alone=large)
        if large:
            here = place.part(share, 1 - share)
            fitted = streamed.all_rows(fitted, stream, sample, seed, here)
        self.fitted_, self.sampled_ = fitted, which
        if stream.names is not None:
            self.feature_names_in_ = np.array(stream.names, object)

    def fit_sample(self, x: Any, y: Any, classes: Any = None, checkpoint: Any = None) -> Any:
        """Learn from rows in memory that are a sample of others.

        classes: all labels there are, where the sample may lack some
        """
        self.check_parameters()
        with self._bar() as callback:
            place = Place.of(checkpoint, None)._replace(callback=callback)
            self.fitted_ = self.learned(x, y, None, place, classes)
        return self

    def _go_on(self, x: Array, y: Array, sample_weight: Any) -> None:
        """More rows: judged by the posterior so far, which then is their prior."""
        rows = Rows(x, y, inputs.weights(sample_weight, x))
        self.fitted_ = further(self.fitted_, rows, self._seed())

    def influence(
        self,
        X_test: Any,
        y_test: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        members: int = 50,
        curvature: Any = None,
    ) -> Harm:
        """Training rows ranked by the harm they do to the loss of test rows that are trusted.

        X, y, sample_weight: the rows of `fit`, needed where the estimator was loaded or copied
        members: how many the loss is computed by
        curvature: a `mtbayes.theory.curvature.Curvature`; Gauss-Newton, damped, by default
        """
        check_is_fitted(self)
        train = self._training_rows(X, y, sample_weight)
        test = self.checked_rows(X_test, y_test, reset=False)
        with self._bar() as callback:
            return harm(
                self.fitted_,
                test,
                train,
                members=members,
                curvature=curvature,
                callback=callback,
            )

    def _check_bounded(self, of: str) -> None:
        """Refuse what has no bound without a posterior, before anything is learned."""
        if not self._without_gradients():
            return
        if not is_classifier(self):
            raise InvalidInput(
                f"learner must be 'auto', 'network' or 'linear' for a certificate of numbers, got "
                f"{self.learner!r}. It has no posterior, and their density has no largest value, "
                "by which kept rows could bound it; learner='network' has one."
            )
        if of != "predictor":
            raise InvalidInput(
                f"of must be 'predictor' for a learner without a posterior, got {of!r} with "
                f"learner={self.learner!r}. Set learner='network' to bound members."
            )

    def _training_rows(self, x: Any, y: Any, sample_weight: Any) -> Rows | None:
        """The rows of the fit as they are passed; None where none are."""
        count = len(self.outlier_probability_)
        if x is None and y is None:
            if sample_weight is not None:
                raise InvalidInput(
                    "sample_weight must come with X and y, the rows of `fit`; without them the "
                    "weights of `fit` are taken."
                )
            return None
        if x is None or y is None:
            raise InvalidInput("X and y must be passed together, the rows of `fit`, or neither.")
        x, y = self.checked_rows(x, y, reset=False)
        if len(x) != count:
            raise InvalidInput(
                f"X must be the {count} rows of `fit`, got {len(x)}. Pass them all, in any order."
            )
        return Rows(x, y, _check.row_weights(sample_weight, count))

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

        confidence: how sure the bound is
        prior_fraction: share of the rows that the prior sees
        risk: "error", the share of wrong labels, which a classifier takes by default; or "log_t",
            the mean log_t loss, which needs t < 1. For a regressor it is of targets in units of
            their interquartile range.
        of: "predictor", what is returned with the bound; "member", one member drawn at random;
            "members", m of them as one; "ensemble", the mean over all members there are
        """
        risk = self._risks[0] if risk is None else risk
        _check.known("risk", risk, list(self._risks))
        check_question(confidence, of)
        self._check_bounded(of)
        if risk == "log_t" and self.t != "auto":
            log_t_span(float(self.t))
        self.check_parameters()
        key = draws.key(self._seed())
        own = clone(self).set_params(warm_start=False)
        rows, targets = own.checked_rows(X, y, reset=True)
        coder = getattr(own, "coder_", None)  # of all rows, as of a file that was fitted before
        parts = Parts.of(rows, targets, prior_fraction, key)
        first = own.learned(
            _safe_indexing(X if coder is None else rows, parts.learn),
            _safe_indexing(y, parts.learn),
            below=1.0 if risk == "log_t" else None,
            spread=True,
        )
        bound = certify(first, rows, targets, parts, confidence, risk, of, key)
        own.fitted_ = bound.predictor
        if coder is not None:
            own.coder_ = coder
        return replace(bound, predictor=own)

    # Input.

    def checked(self, x: Any, *targets: Any, reset: bool, **options: Any) -> Any:
        """X, or X and y, by scikit-learn's rules; images get an axis for their channels."""
        if targets:
            inputs.refuse_name(targets[0])
            inputs.refuse_annotations(targets[0])
            options["y"] = targets[0]
        images = self._takes_images()
        own = None if isinstance(self.learner, str) else frames.own(x)
        if own is not None:
            self.__dict__.pop("coder_", None)
            return inputs.checked_beside(self, own, reset=reset, **options)
        if not isinstance(self.learner, str) and takes_gaps(self.learner):
            options["ensure_all_finite"] = "allow-nan"
        x = x if images else frames.coded(self, x, reset=reset)
        rows, *rest = inputs.checked(self, x, images=images, reset=reset, **options)
        if images and isinstance(self.network, str) and rows.ndim == 3:
            rows = rows[..., None]
        return (rows, *rest) if rest else rows

    def check_parameters(self) -> None:
        """Refuse parameters that no fit can take."""
        super().check_parameters()
        if isinstance(self.learner, str):
            _check.known("learner", self.learner, LEARNERS, " or an estimator of scikit-learn")
            if self.learner != "auto" and self.learner != "network" and self._takes_images():
                raise InvalidInput(
                    f"learner must be 'auto' or 'network' where network is given, got "
                    f"{self.learner!r}. Leave network out for rows of a table."
                )
        else:
            check_wrapped(self.learner, classes=is_classifier(self))
        if self.warm_start and self._without_gradients():
            raise InvalidInput(
                f"warm_start must be False for a learner without a posterior, got True with "
                f"learner={self.learner!r}. Set learner='network' to start from the fit before."
            )
        _check.ordinary(self.t_p, "t_p", "1 is the KL divergence.")
        _check.count(self.modes, "modes", "10 is the default.")
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

    def _calibrated(self, x: Any) -> Any:
        """The calibrated predictive of a user's rows, in the learner's units."""
        check_is_fitted(self)
        return self.fitted_.calibrated(self.checked(x, reset=False))

    def judge(self, x: Any, y: Any) -> Judgement:
        """What is said of rows: which are wrong, and what they should be.

        Rows of the fit that a learner may know by heart are judged by members without them.
        """
        check_is_fitted(self)
        return self.fitted_.judge(*self.checked_rows(x, y, reset=False))
