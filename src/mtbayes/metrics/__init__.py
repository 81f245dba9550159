"""Numbers that say how good an answer is; never pictures."""

from mtbayes.metrics.calibration import (
    Reliability,
    coverage,
    expected_calibration_error,
    reliability,
)

__all__ = ["Reliability", "coverage", "expected_calibration_error", "reliability"]
