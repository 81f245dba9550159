"""Numbers that say how good an answer is; never pictures."""

from mtbayes.metrics.calibration import Reliability, expected_calibration_error, reliability

__all__ = ["Reliability", "expected_calibration_error", "reliability"]
