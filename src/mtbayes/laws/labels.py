"""Labels of which some are wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, expit, logit, ndtri

from mtbayes._values import must, must_be_array, storable
from mtbayes.laws.beliefs import Telling, sureness
from mtbayes.laws.estimation import (
    Contamination,
    allowance,
    calibrate,
    calibrate_all_over,
    leaned,
    leaning_share,
    near_one,
    one_may_be,
    profile,
    weighed,
)
from mtbayes.laws.given import (
    MOST_CLASSES,
    SPREAD,
    beside_rare,
    confusion_at,
    doubt_of,
    given_by_temperature,
    joint_of,
    labels_by_temperature,
    tempered,
    untrusted,
)
from mtbayes.laws.mixtures import TINY, explained_below
from mtbayes.laws.surprise import Surprise
from mtbayes.maths.softmax import log_softmax
from mtbayes.predictives import ClassPredictive, of_rows
from mtbayes.types import Array, FloatArray

_TEMPERATURES = tuple(np.exp(np.linspace(-1.5, 0.5, 7)))
_FLAT = 1e-3  # a slope that is none
_SLOPE_GAIN = 5.0  # nats over all rows; chance gives one number as much once in a thousand times
_LEAST_GAIN = 2.0  # the same over rows that a confusion was not learned from
_BELOW = 0.97  # of the share of wrong labels at which they tell nothing
_JUDGES = 4000  # rows that say whether wrong labels prefer some classes
_ANSWERS = 5_000_000  # probabilities of rows and classes, of which a law is told by no more
_POOL_SPREAD = 0.25  # of the log temperature of what was calibrated before
_FAR = np.linspace(-3.0, 2.0, 31)  # log temperatures to look at
_CHANCE = 0.005  # of a temperature, below which it is not heard
_SHOWN = 0.9  # confidence that a predictive tells something, for labels to be called wrong
_FLATTEST = 4.0  # log temperature


@storable
@dataclass(frozen=True)
class WrongLabels:
    """Good labels follow the predictive at a temperature, wrong ones p(given | true).

    epsilon: share of wrong labels
    temperature: the predictive's log probabilities are divided by it and normalised anew
    confusion: [C, C], p(given | true) of a wrong label, with a diagonal of 0; None if uniform
    slope: of the log odds that a label is wrong, by the row's doubt; 0 if all rows have epsilon
    centre: the doubt at which these odds are those of epsilon
    doubt: [n], of the rows of a law about them alone; None for any rows, whose doubt is the entropy
        of their predictive by that of a blind guess
    surprise: share of right labels that the predictive does not foresee (`mtbayes.laws.surprise`)
    spread: of the log temperature, before any row is seen
    temperatures, chances: [K], over which what is told of new rows is averaged; None: the one alone
    """

    epsilon: float = 0.0
    temperature: float = 1.0
    confusion: FloatArray | None = None
    slope: float = 0.0
    centre: float = 0.0
    doubt: FloatArray | None = None
    surprise: float = 0.0
    spread: float = SPREAD
    temperatures: FloatArray | None = None
    chances: FloatArray | None = None

    @classmethod
    def fit(cls, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """By maximum likelihood from the predictive of labels y[n] with weights [n].

        p(given | true) is learned only where it explains rows clearly better which have not been
        learned from: beside one of few rows, ε comes out too large. A slope, which is one number,
        is where it explains the rows themselves clearly better. Of two classes neither can be told
        from labels that are uncertain by themselves.
        """
        found = cls().explaining(predictive, y, weight)
        return replace(found, surprise=found.unforeseen(predictive, y, weight).share)

    @classmethod
    def of_pool(cls, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """Beside what calibrated learners say together, whose temperature is near 1."""
        found = cls(spread=_POOL_SPREAD).explaining(predictive, y, weight)
        return found.averaged(predictive, y, weight)

    def explaining(self, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """Without surprises, by this spread."""
        classes, rows = np.shape(predictive.log_probs)[1], (predictive, y, weight)
        if classes == 2:
            return self.beside(*rows)
        confusion = beside_rare(y, weight, classes)
        plain = partial(self.beside, confusion=confusion)
        if classes <= MOST_CLASSES and _pays(self._confused, plain, *rows):
            confusion = self._confused(*rows).confusion
        even, leaning = self.beside(*rows, confusion), self.leaning(*rows, confusion)
        gain = (leaning.score(predictive, y) - even.score(predictive, y)) @ weight
        return leaning if gain > _SLOPE_GAIN else even

    @classmethod
    def none(cls, y: Array, weight: Array) -> WrongLabels:
        """No wrong label, where rows are too few to learn of any."""
        return cls()

    def beside(
        self,
        predictive: ClassPredictive,
        y: Array,
        weight: Array,
        confusion: FloatArray | None = None,
    ) -> WrongLabels:
        """ε and the temperature beside a confusion."""
        rows = _telling(predictive)
        few = of_rows(predictive, rows)
        logs_at = labels_by_temperature(few, y[rows], confusion)
        explain = partial(explained_below, most=_most(predictive))
        counted = weight[rows]
        prior = sureness(few, counted, self.spread)
        best = _search(few)(logs_at, counted, explain, prior)
        epsilon = one_may_be(float(explain(logs_at(best), counted)[0][1]), weight.sum())
        return WrongLabels(epsilon, float(np.exp(best)), confusion, spread=self.spread)

    def leaning(
        self,
        predictive: ClassPredictive,
        y: Array,
        weight: Array,
        confusion: FloatArray | None = None,
        doubt: FloatArray | None = None,
    ) -> WrongLabels:
        """The slope too, by a doubt of these rows or the predictive's own."""
        rows = _telling(predictive)
        few, counted = of_rows(predictive, rows), weight[rows]
        logs_at = labels_by_temperature(few, y[rows], confusion)
        by = doubt_of(few) if doubt is None else doubt[rows]
        prior = sureness(few, counted, self.spread)
        best = _search(few)(logs_at, counted, partial(leaned, doubt=by), prior)
        (level, slope), _ = leaned(logs_at(best), counted, by)
        if slope < _FLAT:
            return self.beside(predictive, y, weight, confusion)
        share = np.clip(expit(level + slope * by), 1e-9, 1 - 1e-9)
        epsilon = float(np.average(share, weights=counted))
        centre = (logit(epsilon) - level) / slope
        factor = float(np.exp(best))
        line = float(slope), float(centre)
        return WrongLabels(epsilon, factor, confusion, *line, doubt, spread=self.spread)

    def beside_all(
        self,
        predictives: Sequence[ClassPredictive],
        y: Array,
        weight: Array,
        alone: Sequence[WrongLabels] = (),
    ) -> list[WrongLabels]:
        """Laws like this one beside several predictives of the same rows, the least robust first.

        Which labels are mistaken for which, and in which rows, does not depend on the predictive:
        all have this confusion. Where the share depends on the row, all have the doubt of the first
        predictive; that of a robust one hardly tells where mistakes are many.
        alone: laws fitted beside each, of which some are such already
        """
        if not self.slope:
            known: Sequence[WrongLabels | None] = alone or [None] * len(predictives)
            return [
                replace(law, surprise=0.0)
                if law is not None and self._is_like(law)
                else self.beside(p, y, weight, self.confusion)
                for p, law in zip(predictives, known, strict=True)
            ]
        doubt = doubt_of(predictives[0])
        return [self.leaning(p, y, weight, self.confusion, doubt) for p in predictives]

    def _is_like(self, law: WrongLabels) -> bool:
        """Whether a law was fitted with this confusion and spread, and the same share in all rows.

        Surprises aside, which are found later.
        """
        return law.confusion is self.confusion and not law.slope and law.spread == self.spread

    def _confused(self, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """With the confusion of the temperature that explains rows best."""
        found = [confusion_at(predictive, y, weight, v) for v in _TEMPERATURES]
        _, confusion = max(found, key=lambda pair: pair[0])
        return self.beside(predictive, y, weight, confusion)

    def check(self, shape: tuple[int, ...], classes: int) -> None:
        """Shares are shares, and the confusion is of all classes."""
        what = "the law of wrong labels"
        must(0 <= self.epsilon <= 1 and 0 < self.temperature < np.inf, what)
        must(0 <= self.surprise < 1 - 1 / max(classes, 2) and self.spread > 0, what)
        must((self.temperatures is None) == (self.chances is None), what)
        if self.temperatures is not None and self.chances is not None:
            count = np.shape(self.temperatures)
            must_be_array(self.temperatures, count, what)
            must_be_array(self.chances, count, what)
            must(len(count) == 1 and bool(np.all(self.temperatures > 0)), what)
            must(bool(np.all(self.chances > 0)) and abs(self.chances.sum() - 1) < 1e-6, what)
        if self.confusion is not None:
            must_be_array(self.confusion, (classes, classes), what)

    def at(self, epsilon: float) -> WrongLabels:
        """The same law with another share of wrong labels."""
        return replace(self, epsilon=epsilon)

    def of_more(self, halves: Sequence[ClassPredictive], y: Array, weight: Array) -> WrongLabels:
        """The same beside what many more members say together, these among them.

        The more members a mean is of, the less sure of itself it is, and the lower the temperature
        that it needs. Whatever is smooth in a mean of k members is a + b/k, to first order: from
        these to very many its log falls as much as from halves of these members to all of them.
        """
        logs = [np.log(self.beside_all([half], y, weight)[0].temperature) for half in halves]
        rise = max(0.0, float(np.mean(logs) - np.log(self.temperature)))
        return replace(self, temperature=self.temperature * float(np.exp(-rise)))

    def of_longer(
        self, before: ClassPredictive, after: ClassPredictive, y: Array, weight: Array
    ) -> WrongLabels:
        """At a temperature that has changed as that of the few rows did.

        Where few labels are in doubt, some thousand rows tell a temperature badly, but how it
        changed well: the same rows are in doubt before and after.
        """
        first, last = self.beside_all([before, after], y, weight)
        return replace(self, temperature=self.temperature * last.temperature / first.temperature)

    def calibrated(self, predictive: ClassPredictive) -> ClassPredictive:
        """The predictive at the temperature; its doubt keeps its split in two kinds."""
        log_probs = log_softmax(np.asarray(predictive.log_probs, float) / self.temperature, axis=1)
        before = np.maximum(predictive.entropy, TINY)
        after = entr(np.exp(log_probs)).sum(axis=1)
        return ClassPredictive(log_probs, np.minimum(predictive.aleatoric / before, 1) * after)

    def told(self, predictive: ClassPredictive) -> ClassPredictive:
        """The calibrated predictive, with a share of labels that it does not foresee.

        Averaged over the temperatures that rows admit: of all that can be told, the mean over what
        may be true has the least expected log loss.
        """
        sure = self._mean(predictive)
        classes = sure.log_probs.shape[1]
        even = self.surprise / (classes - 1)
        log_probs = np.logaddexp(
            sure.log_probs + np.log1p(-self.surprise - even), np.log(even + TINY)
        )
        return ClassPredictive(log_probs, sure.aleatoric)

    def _mean(self, predictive: ClassPredictive) -> ClassPredictive:
        """The calibrated predictive, averaged over temperatures."""
        if self.temperatures is None or self.chances is None:
            return self.calibrated(predictive)
        log_probs: Any = -np.inf
        aleatoric: Any = 0.0
        for temperature, chance in zip(self.temperatures, self.chances, strict=True):
            one = replace(self, temperature=float(temperature)).calibrated(predictive)
            log_probs = np.logaddexp(log_probs, one.log_probs + np.log(chance))
            aleatoric = aleatoric + chance * one.aleatoric
        return ClassPredictive(log_probs, aleatoric)

    def averaged(self, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """The same law, with the temperatures that rows y admit, and how likely each is.

        Where the labels of a two-class table are wrong in a fifth of the rows, or its classes
        overlap, rows are explained nearly as well by either: by a higher share of wrong labels and
        a lower temperature. Shares are averaged over too (`Surprise.evidence`):

            p(T | rows) ∝ p(T) ∫ p(s) Π_i [(1-s) p_T(y_i) + s (1-p_T(y_i))/(C-1)] ds

        Of many classes wrong labels lie where nobody expects them: one temperature will do.
        """
        if np.shape(predictive.log_probs)[1] > MOST_CLASSES:
            return replace(self, surprise=self.unforeseen(predictive, y, weight).share)
        rows = _telling(predictive)
        few, counted = of_rows(predictive, rows), weight[rows]
        prior = sureness(few, counted, self.spread)
        each: dict[float, Surprise] = {}

        def evidence(log_temperature: float) -> float:
            at = replace(self, temperature=float(np.exp(log_temperature)))
            each[log_temperature] = at.unforeseen(predictive, y, weight)
            return each[log_temperature].evidence + prior(log_temperature)

        looks, chances = weighed(evidence, _FAR, _CHANCE)
        heard = chances > _CHANCE
        looks, chances = looks[heard], chances[heard] / chances[heard].sum()
        surprise = float(chances @ np.array([each[float(v)].share for v in looks]))
        found = replace(self, surprise=surprise, temperatures=np.exp(looks), chances=chances)
        return found.beside_chance(few, y[rows], counted)

    def beside_chance(self, predictive: ClassPredictive, y: Array, weight: Array) -> WrongLabels:
        """The same law, with the chance that the predictive tells nothing of the labels.

        One that has learned noise by heart is sure of itself. Its labels look wrong in half of the
        rows, and as well it may be flattened. With the probability that it tells nothing, new rows
        are told the flattened one; and where rows do not show that it tells anything, no label is
        called wrong.
        """
        telling = Telling.of(predictive, y, weight)
        if self.temperatures is None or self.chances is None or telling.probability > 1 - _CHANCE:
            return self
        given_at = given_by_temperature(np.asarray(predictive.log_probs, float), y)

        def loss(log_temperature: float) -> float:
            return -float(np.log(given_at(float(np.exp(log_temperature))) + TINY) @ weight)

        flat = minimize_scalar(loss, bounds=(-1.0, _FLATTEST), method="bounded")
        temperature = float(np.exp(flat.x))
        found = replace(
            self,
            temperatures=np.append(self.temperatures, temperature),
            chances=np.append(telling.probability * self.chances, 1 - telling.probability),
        )
        if telling.z > ndtri(_SHOWN):
            return found
        epsilon = one_may_be(0.0, weight.sum())
        return replace(found, epsilon=epsilon, temperature=temperature, confusion=None, slope=0.0)

    def unforeseen(self, predictive: ClassPredictive, y: Array, weight: Array) -> Surprise:
        """What rows tell of surprises; some rows will do."""
        some = np.sort(np.random.default_rng(0).permutation(len(y))[:_JUDGES])
        few = of_rows(predictive, some)
        counted = weight[some] * (weight.sum() / weight[some].sum())
        logs = labels_by_temperature(few, y[some], self.confusion)(float(np.log(self.temperature)))
        likeliest = tempered(np.asarray(few.log_probs, float), self.temperature).max(axis=1)
        doubt = float(np.average(1 - likeliest, weights=counted))
        lean = self._lean(few) if self.slope and self.doubt is None else None
        at = float if lean is None else partial(leaning_share, lean=lean)
        return Surprise.of(logs, counted, doubt, _most(few), at)

    def good(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Log probability of each given label if it is good, [n]."""
        return np.asarray(self.calibrated(predictive).log_prob(y))

    def score(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Log probability of each given label under the whole law, [n]."""
        good, wrong = self._joint(predictive, y)
        return np.log(good + wrong.sum(axis=1) + TINY)

    def outlier_probability(self, predictive: ClassPredictive, y: Array) -> FloatArray:
        """Probability that each given label is wrong, [n]."""
        good, by_class = self._joint(predictive, y)
        wrong = by_class.sum(axis=1)
        return wrong / (good + wrong + TINY)

    def alternative(self, predictive: ClassPredictive, y: Array) -> tuple[Any, FloatArray]:
        """The most probable label of each row if the given one is wrong, and its probability then.

        Neither depends on the share of wrong labels.
        """
        _, joint = self._joint(predictive._replace(trusted=None), y, 0.5)
        other = joint.argmax(axis=1)
        return other, joint[np.arange(len(y)), other] / (joint.sum(axis=1) + TINY)

    def contamination(
        self, predictive: ClassPredictive, y: Array, weight: Array, level: float = 0.95
    ) -> Contamination:
        """ε of these rows with an interval that admits what a model cannot see.

        By the profile of the likelihood, confusion and slope held fixed; of the law that was not
        taken too, where it explains rows nearly as well. At the upper end a wrong label may be one
        that the model holds for likely, as people's mistakes are. Then no likelihood tells it from
        doubt, and all labels may be wrong that are not the most probable ones. At the lower end
        some labels may be right that the model does not foresee, and all of them where it tells
        nothing of them that chance would not; and what looks like labels of two classes that were
        confused may be a weak model that cannot tell the two apart.
        """
        rows = _telling(predictive)
        if not isinstance(rows, slice):
            own = self if self.doubt is None else replace(self, doubt=self.doubt[rows])
            return own.contamination(of_rows(predictive, rows), y[rows], weight[rows], level)
        found = [self.profiled(predictive, y, weight, level)]
        if np.shape(predictive.log_probs)[1] > 2 and self.doubt is None:
            fit = self.beside if self.slope else self.leaning
            other = fit(predictive, y, weight, self.confusion)
            loss = (self.score(predictive, y) - other.score(predictive, y)) @ weight
            if loss < allowance(level):
                found.append(other.profiled(predictive, y, weight, level))
        differing = untrusted(predictive, predictive.labels != y)
        differ = float(np.average(differing, weights=weight))
        error = np.sqrt(differ * (1 - differ) / weight.sum())
        highest = min(differ + float(ndtri(level)) * error, _most(predictive))
        low, high = min(v.low for v in found), max(highest, *(v.high for v in found))
        surprise = self.unforeseen(predictive, y, weight)
        value = found[0].value
        if self.confusion is not None:
            # The model's own confusion: of no more rows than it doubts.
            rare = beside_rare(y, weight, len(self.confusion))
            plain = self.beside(predictive, y, weight, rare)
            plain_low = plain.profiled(predictive, y, weight, level).low
            low = min(low, max(plain_low, low - surprise.doubt))
        below = 0.0 if surprise.clean > 1 - level else value - np.hypot(value - low, surprise.most)
        if Telling.of(predictive, y, weight).z < ndtri(level):
            # These rows alone show nothing: many labels may be wrong, none, or as many as before.
            below, value = 0.0, min(value, self.epsilon)
        return Contamination(value, max(float(below), 0.0), float(high))

    def profiled(
        self, predictive: ClassPredictive, y: Array, weight: Array, level: float
    ) -> Contamination:
        """ε of these rows with an interval by the likelihood.

        That the surest rows are sure is believed, not seen: it moves ε, but narrows no interval,
        neither here nor where learners were calibrated by it before they were pooled.
        """
        logs_at = labels_by_temperature(predictive, y, self.confusion)
        lean = self._lean(predictive) if self.slope else None
        priors = sureness(predictive, weight, self.spread), partial(near_one, spread=SPREAD)
        most = _most(predictive)
        sure, plain = (
            profile(logs_at, weight, level, lean, most, prior, _search(predictive))
            for prior in priors
        )
        return Contamination(sure.value, min(sure.low, plain.low), max(sure.high, plain.high))

    def _lean(self, predictive: ClassPredictive) -> FloatArray:
        """By how much the log odds of each row exceed those of epsilon, [n]."""
        doubt = doubt_of(predictive) if self.doubt is None else self.doubt
        return self.slope * (doubt - self.centre)

    def _joint(
        self, predictive: ClassPredictive, y: Array, epsilon: float | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """p(label good, given = y), [n], and p(true = c, label wrong, given = y), [n, C].

        epsilon: another share of wrong labels than the law's
        """
        epsilon = self.epsilon if epsilon is None else epsilon
        probs = tempered(np.asarray(predictive.log_probs, float), self.temperature)
        share: Any = epsilon
        if self.slope:
            share = leaning_share(epsilon, self._lean(predictive))[:, None]
        good, wrong = joint_of(probs, y, share, self.confusion)
        return good, untrusted(predictive, wrong.T).T


def _search(predictive: ClassPredictive) -> Callable[..., float]:
    """How the best log temperature is found: of two classes several may each be the best nearby."""
    if np.shape(predictive.log_probs)[1] == 2:
        return calibrate_all_over
    return partial(calibrate, ends=(_FAR[0], _FAR[-1]))


def _pays(
    rich: Callable[..., WrongLabels],
    plain: Callable[..., WrongLabels],
    predictive: ClassPredictive,
    y: Array,
    weight: Array,
) -> bool:
    """Whether a rich law of one half of the rows explains the other half better than a plain one.

    rich, plain: fits of a law to the three arguments that follow
    """
    some = np.random.default_rng(0).permutation(len(y))[:_JUDGES]
    halves = some[::2], some[1::2]
    gains = []
    for one, other in (halves, halves[::-1]):
        seen, unseen = (of_rows(predictive, half) for half in (one, other))
        scores = (law(seen, y[one], weight[one]).score(unseen, y[other]) for law in (rich, plain))
        gains.append(np.subtract(*scores))
    gain, share = np.concatenate(gains), weight[np.concatenate(halves[::-1])]
    mean = np.average(gain, weights=share)
    error = np.sqrt(np.average((gain - mean) ** 2, weights=share) / len(gain))
    return bool(mean > 2 * error and mean * len(gain) > _LEAST_GAIN)


def _telling(predictive: ClassPredictive) -> Any:
    """Which rows tell enough of a law: all, or some where rows and classes are many."""
    n, classes = np.shape(predictive.log_probs)
    if n * classes <= _ANSWERS:
        return slice(None)
    return np.sort(np.random.default_rng(0).permutation(n)[: max(_ANSWERS // classes, 1)])


def _most(predictive: ClassPredictive) -> float:
    """The largest share of wrong labels: beyond it a given label speaks for the other classes."""
    classes = np.shape(predictive.log_probs)[1]
    return _BELOW * (classes - 1) / classes
