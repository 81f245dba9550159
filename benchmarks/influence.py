"""Influence measured: against refits of a small network, and on MNIST with wrong labels.

    python benchmarks/influence.py refits
    python benchmarks/influence.py mnist --seeds 3

`refits` leaves out the rows of a small network one by one, refits from the minimum, and prints the
rank correlation of predicted and actual change of the test loss: once for a prediction made at
minima of growing exactness, once for refits that stop early.

`mnist` trains 784-25-10 at several t on rows of which 30 % have a wrong label, ranks the training
rows by the harm they do to clean test rows, and prints the AUROC of finding the wrong ones, beside
that of `outlier_probability_`.
"""

import argparse
import math
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from mtbayes import Criterion, InvalidInput, Model, RobustClassifier, fit
from mtbayes.data.contamination import flip_labels
from mtbayes.experiments.results import write_columns
from mtbayes.likelihoods import Categorical
from mtbayes.networks import mlp
from mtbayes.theory.curvature import Curvature
from mtbayes.theory.influence import influence

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-9)


def circle(rng, n):
    x = rng.normal(size=(n, 2))
    return x, (x[:, 0] + 0.5 * x[:, 1] ** 2 > 0.3).astype(int)


def test_loss(at, x, y):
    groups = at.log_density(at.state, x, y)
    return -float(jnp.mean(jax.nn.logsumexp(groups, axis=0) - math.log(len(groups))))


def refits(n):
    """A 2-4-2 classifier, n rows of which 15 % have a wrong label, 20 draws in groups of 5."""
    rng = np.random.default_rng(0)
    x, y = circle(rng, n)
    wrong = n * 9 // 60
    y[:wrong] = 1 - y[:wrong]
    test = circle(rng, 200)
    model, criterion = Model(mlp((2, 4, 2)), Categorical(2)), Criterion(m=5, t=0.8, beta=5.0)
    state = fit(model, x, y, criterion, key=jax.random.key(1), epochs=500).state
    start = influence(model, x, y, criterion, state, members=20)
    print(f"{n} rows, {wrong} wrong; 60 of them are left out, one by one")
    print(f"after `fit`: J {start.objective()[0]:.6f}, gradient {start.objective()[1]:.1e}")
    best, status = start.minimised(tol=1e-10)
    print(f"at the minimum: J {best.objective()[0]:.6f}. {status}")
    left = np.arange(0, n, n // 60)
    without = [(np.arange(n) != i).astype(float) for i in left]
    exact = [best.minimised(weight, tol=1e-10)[0] for weight in without]
    actual = np.array([test_loss(at, *test) for at in exact]) - test_loss(best, *test)
    for tol in TOLERANCES:
        at, status = start.minimised(tol=tol)
        try:
            predicted = at.on_loss(*test).without()[left]
            rank = f"{spearmanr(predicted, actual).statistic:.3f}"
            rank += f", actual/predicted {np.median(actual / predicted):.2f} (median)"
        except InvalidInput as error:
            rank = f"none. {str(error).split(':')[0]}"
        print(f"predicted at a gradient of {status.residual:.0e}: rank {rank}")
    predicted = best.on_loss(*test).without()[left]
    for tol in TOLERANCES:
        ended = [best.minimised(weight, tol=tol)[0] for weight in without]
        change = np.array([test_loss(at, *test) for at in ended]) - test_loss(best, *test)
        rank = spearmanr(predicted, change).statistic if np.ptp(change) else math.nan
        print(f"refits that stop at a gradient of {tol:.0e}: rank {rank:.3f}")
    for where, at in (("at the minimum", best), ("where `fit` ended", start)):
        for damping in (0.0, 0.1):
            found = at.with_curvature(Curvature("gauss_newton", damping=damping))
            rank = spearmanr(found.on_loss(*test).without()[left], actual).statistic
            print(f"Gauss-Newton {where}, damping {damping:g}: rank {rank:.3f}")


def mnist(rows, test):
    folder = Path(os.environ.get("MTBAYES_DATA", "data"))
    file = np.load(folder / "mnist.npz", allow_pickle=False)
    flat = {k: file[k].reshape(len(file[k]), -1) / 255 for k in ("x_train", "x_test")}
    y_train, y_test = file["y_train"].astype(int), file["y_test"].astype(int)
    return (flat["x_train"][:rows], y_train[:rows]), (flat["x_test"][:test], y_test[:test])


def measure(data, t, seed, curvature, options):
    (x, clean), trusted = data
    dirty = flip_labels(clean, 0.3, seed=seed)
    model = RobustClassifier(learner="network", hidden=(25,), t=t, random_state=seed).fit(
        x, dirty.data
    )
    started = time.monotonic()
    found = model.influence(*trusted, curvature=curvature, members=options.members)
    seconds = time.monotonic() - started
    count = len(x) // 10
    row = {
        "t": t,
        "seed": float(seed),
        "auroc_harm": roc_auc_score(dirty.touched, found.harm),
        "auroc_probability": roc_auc_score(dirty.touched, model.outlier_probability_),
        "wrong_in_worst_tenth": float(dirty.touched[found.order[:count]].mean()),
        "harmful_of_wrong": float((found.harm[dirty.touched] > 0).mean()),
        "harmful_of_clean": float((found.harm[~dirty.touched] > 0).mean()),
        "seconds": seconds,
    }
    return row, found.status


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["refits", "mnist"])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--t", type=float, nargs="+", default=[1.0, 0.7, 0.5])
    parser.add_argument("--kind", choices=["hessian", "gauss_newton"], default="gauss_newton")
    parser.add_argument("--damping", type=float, default=0.1)
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("results/influence-mnist"))
    options = parser.parse_args()
    if options.what == "refits":
        jax.config.update("jax_enable_x64", True)
        for n in (60, 180):
            refits(n)
        return
    data = mnist(options.rows, options.test)
    curvature = Curvature(options.kind, damping=options.damping, tol=1e-3, steps=100)
    rows = []
    for t in options.t:
        for seed in range(options.seeds):
            row, status = measure(data, t, seed, curvature, options)
            rows.append(row)
            print("  ".join(f"{k} {v:.3g}" for k, v in row.items()), status, flush=True)
    columns = {k: [r[k] for r in rows] for k in rows[0]}
    write_columns(options.out / f"{options.kind}.csv", columns)
    for t in options.t:
        mine = [r for r in rows if r["t"] == t]
        means = {k: np.mean([r[k] for r in mine]) for k in mine[0] if k != "seed"}
        print("mean  " + "  ".join(f"{k} {v:.3f}" for k, v in means.items()))


if __name__ == "__main__":
    main()
