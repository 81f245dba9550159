"""The pull of a contaminating row on the ensemble against where it lies (Fig. 3).

q = N(φ, 1), the model N(θ, 1) and m = ∞, on the five points of the toy example, at the φ that
minimises J without a regulariser; all in closed form. Beside it the gross-error sensitivity, the
largest influence that any row can have, against t: on the same points, and on rows that the
predictive fits exactly, where it is √(1+spread²)·e^(-1/2)·(2-t)^(3/2)/√(1-t), least at t = 1/2.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from scipy.stats import norm

from mtbayes.criteria import Criterion
from mtbayes.experiments.results import write_columns
from mtbayes.experiments.toy import MATCHED
from mtbayes.progress import Callback, Progress
from mtbayes.theory.sensitivity import (
    contamination_term,
    gaussian_minimum,
    gross_error_sensitivity,
)

T_GRID = (1.0, 0.9, 0.7, 0.5, 0.3)
Z = np.linspace(-14, 10, 481)
# Denser towards t = 1, where the sensitivity grows like (1-t)^(-1/2).
FINE = 1 - np.concatenate(
    [np.geomspace(1e-4, 0.05, 40, endpoint=False), np.linspace(0.05, 0.9, 86)]
)
# Rows as the predictive N(0, 2) has them: its quantiles.
FITTED = norm.ppf((np.arange(500) + 0.5) / 500, scale=math.sqrt(2))


def run(out: Path, callback: Callback) -> None:
    """Write `terms.csv`, `minima.csv`, `points.csv` and `sensitivity.csv` in `out/influence`."""
    folder, points = out / "influence", np.array(MATCHED)
    callback(Progress(0.0, "contamination term"))
    criteria = {t: Criterion(math.inf, t, math.inf) for t in T_GRID}
    minima = {t: gaussian_minimum(c, points) for t, c in criteria.items()}
    terms = {f"{t:g}": np.abs(contamination_term(c, Z, minima[t])) for t, c in criteria.items()}
    write_columns(folder / "terms.csv", {"z": Z, **terms})
    write_columns(folder / "points.csv", {"x": list(MATCHED)})
    most = [gross_error_sensitivity(c, points) for c in criteria.values()]
    write_columns(
        folder / "minima.csv",
        {"t": list(minima), "phi": list(minima.values()), "sensitivity": most},
    )
    callback(Progress(0.5, "gross-error sensitivity"))
    cases = {"toy m=1": (1, points), "toy m=inf": (math.inf, points), "fitted": (math.inf, FITTED)}
    columns = {
        name: [gross_error_sensitivity(Criterion(m, float(t), math.inf), x) for t in FINE]
        for name, (m, x) in cases.items()
    }
    write_columns(folder / "sensitivity.csv", {"t": FINE, **columns})
    callback(Progress(1.0, "gross-error sensitivity"))
