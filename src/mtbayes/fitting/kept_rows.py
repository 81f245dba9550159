"""Certificates of learners without a posterior: rows that were kept from the learner."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betaincinv

from mtbayes.fitting.fitted import Fitted
from mtbayes.maths import log_t_from_log
from mtbayes.theory.bounds import Bound, checked_confidence, kl_inverse, log_t_span, sentence
from mtbayes.types import Array


def by_test_rows(first: Fitted, x: Array, y: Array, confidence: float, risk: str) -> Bound:
    """A test-set bound: rows that were not learned from, by a tail of the binomial or Chernoff's.

    It is about what was learned from the other part, as it stands, and about classes: the density
    of numbers has no largest value. A label that was not seen there
    is an error, and costs as much as a loss can.
    """
    classes = first.units.targets.classes
    said, known = first.calibrated(x), np.isin(y, classes)
    codes = first.units.targets.code(np.where(known, y, classes[0]))
    delta, n = 1 - checked_confidence(confidence), len(y)
    if risk == "error":
        wrong_rows = int(np.sum((said.labels != codes) | ~known))
        mean = wrong_rows / n
        value = (
            1.0 if wrong_rows == n else float(betaincinv(wrong_rows + 1, n - wrong_rows, 1 - delta))
        )
        bounds, width = "the error rate of the predictor", 1.0
    else:
        span = log_t_span(first.t)
        loss = -np.asarray(log_t_from_log(said.log_prob(codes), first.t))
        mean, width = float(np.where(known, loss, span.width).mean()), float(span.width)
        value = width * float(kl_inverse(mean / width, -math.log(delta) / n))
        bounds = f"the mean log_t loss (t = {first.t:g}, at worst {width:.3g}) of the predictor"
    terms: dict[str, float | str] = {
        "bounds": bounds,
        "empirical risk": mean,
        "for the number of test rows": value - mean,
        "kind": "test set: no posterior, the rows were kept from the learner",
        "rows": float(n),
        "δ": delta,
        "largest loss": width,
    }
    return Bound(value, terms, sentence(value, terms), first)
