"""Which reading of the toy example gives the paper's Tables I and III? (docs/errata.md)

For each reading the five unpublished points are fitted to the 24 cells, and the root mean square
difference is printed; then what iterations, Monte Carlo, grids and TV's range do to the cells.
Takes about ten minutes: .venv/bin/python benchmarks/toy_readings.py
"""

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

from mtbayes import Criterion, fixed_points
from mtbayes.experiments.toy import MATCHED, MATCHED_SUM, T_GRID, TABLE_3, true_density
from mtbayes.metrics.distance import total_variation

PAPER = np.array(list(TABLE_3.values()))
MEMBERS = list(TABLE_3)


def grids(points: int = 500, low: float = -20, high: float = 20, cells: int = 2001):
    theta = np.linspace(-30, 30, points)
    prior = norm.pdf(theta, 0, 3)
    return theta, prior / prior.sum(), np.linspace(low, high, cells)


def distance(q, theta, x):
    p = q @ norm.pdf(x[None], theta[:, None], 1)
    return total_variation(p, true_density(x), float(x[1] - x[0])).value


def table(data, beta=float, shift=lambda m: 0.0, grid=None, tol=1e-4):
    theta, prior, x = grid or grids()
    log_lik = norm.logpdf(np.asarray(data)[None], theta[:, None], 1)
    rows = []
    for m in MEMBERS:
        criteria = [Criterion(m, t, beta(m)) for t in T_GRID]
        solutions = fixed_points(log_lik + shift(m), prior, criteria, tol=tol)
        rows.append(distance(np.array([s.state for s in solutions]), theta, x))
    return np.array(rows)


def fitted(name, start, **reading):
    def error(z):
        return np.sqrt(np.mean((table(z, **reading) - PAPER) ** 2))

    best = min(
        (
            minimize(
                error,
                s,
                method="Nelder-Mead",
                options={
                    "maxfev": 150,
                    "initial_simplex": np.vstack([s, np.array(s) + 0.4 * np.eye(5)]),
                },
            )
            for s in start
        ),
        key=lambda r: r.fun,
    )
    worst = np.abs(table(best.x, **reading) - PAPER).max()
    print(f"{name:45} rms {best.fun:.4f}  max {worst:.3f}  {np.sort(best.x).round(2)}", flush=True)


def damped(data, m, t, steps, alpha, draws=None, seed=0):
    """The paper's iteration, beta = m, exact or with a Monte Carlo average over `draws`."""
    theta, prior, x = grids()
    lik = norm.pdf(np.asarray(data)[None], theta[:, None], 1)
    rng = np.random.default_rng(seed)
    q = prior.copy()
    for _ in range(steps):
        others = lik[rng.choice(len(q), (draws, m - 1), p=q)].sum(1)  # [draws, n]
        mean = (lik[:, None] + others) / m
        inside = np.log(mean) if t == 1 else (mean ** (1 - t) - 1) / (1 - t)
        log_q = np.log(prior) + m * inside.mean(1).sum(1)
        new = np.exp(log_q - log_q.max())
        q = (1 - alpha) * q + alpha * new / new.sum()
    return float(distance(q[None], theta, x)[0])


def main():
    starts = [MATCHED, MATCHED_SUM, (-7.1, -3.3, -0.1, 1.4, 2.1)]
    root = 0.5 * np.log(2 * np.pi)
    fitted("mean, beta = m", starts)
    fitted("mean, beta = 1.4 m", starts, beta=lambda m: 1.4 * m)
    fitted("mean, beta = 1", starts, beta=lambda m: 1.0)
    fitted("sum, beta = m", starts, shift=np.log)
    fitted("no 1/sqrt(2 pi), beta = m", starts, shift=lambda m: root)
    fitted("no 1/sqrt(2 pi) for m > 1, beta = m", starts, shift=lambda m: root if m > 1 else 0.0)
    exact = table(MATCHED, tol=1e-7)
    for name, grid in {
        "250 points for theta": grids(points=250),
        "2000 points for theta": grids(points=2000),
        "TV on [-12, 12]": grids(low=-12, high=12),
        "TV with 500 cells": grids(cells=501),
    }.items():
        change = np.abs(table(MATCHED, grid=grid, tol=1e-7) - exact).max()
        print(f"{name:45} moves a cell by at most {change:.4f}", flush=True)
    for m, t in ((10, 1.0), (10, 0.9), (10, 0.3), (10, 0.1)):
        ours = exact[MEMBERS.index(m), T_GRID.index(t)]
        for steps, alpha, draws in ((30, 0.1, 1000), (300, 0.1, 1000), (300, 0.1, 30)):
            values = [damped(MATCHED, m, t, steps, alpha, draws, seed) for seed in range(3)]
            what = f"m={m} t={t}: {steps} steps of {alpha}, {draws} draws"
            print(f"{what:45} {np.round(values, 3)} (exact {ours:.3f})", flush=True)


if __name__ == "__main__":
    main()
