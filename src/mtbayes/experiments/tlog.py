"""The log_t loss of a prediction against the probability it gave (Fig. 2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mtbayes.experiments.results import write_columns
from mtbayes.maths import log_t
from mtbayes.progress import Callback, Progress

T_GRID = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, 0.0)


def run(out: Path, callback: Callback) -> None:
    """Write `out/tlog/curves.csv`: p and -log_t(p) for each t."""
    callback(Progress(0.0, "loss curves"))
    p = np.concatenate([np.geomspace(1e-4, 0.01, 40, endpoint=False), np.linspace(0.01, 1, 200)])
    curves = {f"{t:g}": -log_t(p, t) for t in T_GRID}
    write_columns(out / "tlog" / "curves.csv", {"p": p, **curves})
    callback(Progress(1.0, "loss curves"))
