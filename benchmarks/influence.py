"""Which training rows do harm, on MNIST with wrong labels: influence beside outlier probability.

    python benchmarks/influence.py --seeds 3

Trains 784-25-10 at several t on rows of which 30 % have a wrong label, ranks the training rows by
the harm they do to clean test rows, and prints the AUROC of finding the wrong ones, beside that of
`outlier_probability_`. With --refit a tenth of the rows is left out, by either ranking and at
random, and a second set of clean rows tells what that did.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from mtbayes import RobustClassifier
from mtbayes.data.contamination import flip_labels
from mtbayes.experiments.tidy import write_columns
from mtbayes.theory.curvature import Curvature


def mnist(rows, test):
    folder = Path(os.environ.get("MTBAYES_DATA", "data"))
    file = np.load(folder / "mnist.npz", allow_pickle=False)
    flat = {k: file[k].reshape(len(file[k]), -1) / 255 for k in ("x_train", "x_test")}
    y_train, y_test = file["y_train"].astype(int), file["y_test"].astype(int)
    trusted, judged = slice(0, test), slice(test, 2 * test)
    return (
        (flat["x_train"][:rows], y_train[:rows]),
        (flat["x_test"][trusted], y_test[trusted]),
        (flat["x_test"][judged], y_test[judged]),
    )


def fitted(x, y, t, seed):
    return RobustClassifier(hidden=(25,), t=t, random_state=seed).fit(x, y)


def measure(data, t, seed, curvature, options):
    (x, clean), trusted, judged = data
    dirty = flip_labels(clean, 0.3, seed=seed)
    model = fitted(x, dirty.data, t, seed)
    started = time.monotonic()
    found = model.influence(*trusted, curvature=curvature, draws=options.draws)
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
    if options.refit:
        orders = {
            "random": np.random.default_rng(seed).permutation(len(x)),
            "harm": found.order,
            "probability": np.argsort(-model.outlier_probability_, kind="stable"),
        }
        row["loss_all"] = log_loss(judged[1], model.predict_proba(judged[0]))
        for name, worst in orders.items():
            kept = np.sort(worst[count:])
            again = fitted(x[kept], dirty.data[kept], t, seed)
            row[f"loss_without_{name}"] = log_loss(judged[1], again.predict_proba(judged[0]))
    return row, found.status


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--t", type=float, nargs="+", default=[1.0, 0.7, 0.5])
    parser.add_argument("--kind", choices=["hessian", "gauss_newton"], default="gauss_newton")
    parser.add_argument("--damping", type=float, default=0.1)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--refit", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/influence-mnist"))
    options = parser.parse_args()
    data = mnist(options.rows, options.test)
    curvature = Curvature(options.kind, damping=options.damping, tol=1e-3, steps=100)
    rows = []
    for t in options.t:
        for seed in range(options.seeds):
            row, status = measure(data, t, seed, curvature, options)
            rows.append(row)
            print("  ".join(f"{k} {v:.3g}" for k, v in row.items()), status, flush=True)
    name = f"{options.kind}-refit.csv" if options.refit else f"{options.kind}.csv"
    write_columns(options.out / name, {k: [r[k] for r in rows] for k in rows[0]})
    for t in options.t:
        mine = [r for r in rows if r["t"] == t]
        means = {k: np.mean([r[k] for r in mine]) for k in mine[0] if k != "seed"}
        print("mean  " + "  ".join(f"{k} {v:.3f}" for k, v in means.items()))


if __name__ == "__main__":
    main()
