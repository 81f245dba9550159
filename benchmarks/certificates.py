"""How tight certificates are: bounds, their terms and the values on test rows, on MNIST.

    .venv/bin/python benchmarks/certificates.py [--quick] [--out DIR]

A network 784-25-10 learns for 6 epochs from 60,000 images, of whose labels a share ε is flipped to
another class; half of the rows make the prior, the bound is on the others. Test rows are as dirty
as the training rows, since that is what a certificate speaks of. The first table is of the log_t
loss of m members (Lemma 1), the second of the error rates, with what they say about clean labels if
flips are known to be uniform. Writes log_t.csv and error.csv after each line. Reads mnist.npz from
the folder in MTBAYES_DATA. Half an hour on two cores.
"""

import csv
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

import jax
import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from mtbayes import RobustClassifier, log_t
from mtbayes._files import atomic
from mtbayes.data.contamination import flip_labels
from mtbayes.theory.bounds import uniform_flips
from mtbayes.theory.sampling import log_t_loss, mean_losses, wrong

MEMBERS, ORDERS = (1, 2, 5, 10), (0.0, 0.3, 0.5, 0.7, 0.9)
OF = ("predictor", "member", "members", "ensemble")
CLASSES, EPOCHS, M, T, EPSILON = 10, 6, 10, 0.5, 0.3
console = Console(width=150) if not sys.stdout.isatty() else Console()


class Data(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    clean_test: np.ndarray


class Loss(NamedTuple):
    """A line of the first table; emp, mc (Monte Carlo), conf and cplx add up to the bound."""

    eps: float
    m: int
    t: float
    bound: float
    emp: float
    mc: float
    conf: float
    cplx: float
    kl: float
    test: float
    ratio: float
    uniform: float
    s: float


class Error(NamedTuple):
    """A line of the second table; emp to undrawn add up to the bound, clean is its conversion."""

    eps: float
    t: float
    of: str
    bound: float
    emp: float
    mc: float
    conf: float
    union: float
    cplx: float
    undrawn: float
    kl: float
    test: float
    clean: float
    clean_test: float
    s: float


def load(epsilon: float, rows: int) -> Data:
    if "MTBAYES_DATA" not in os.environ:
        sys.exit("Set MTBAYES_DATA to the folder that holds mnist.npz.")
    with np.load(Path(os.environ["MTBAYES_DATA"]) / "mnist.npz") as file:
        x, x_test = (file[k].reshape(len(file[k]), -1) / 255.0 for k in ("x_train", "x_test"))
        y, clean = file["y_train"].astype(int), file["y_test"].astype(int)
    dirty, _ = flip_labels(y[:rows], epsilon, seed=1)
    dirty_test, _ = flip_labels(clean, epsilon, seed=2)
    return Data(x[:rows], dirty, x_test, dirty_test, clean)


def certified(data: Data, m: int, t: float, risk: str, of: str, modes: int = 1):
    """A bound, and the seconds that it took."""
    begin = time.perf_counter()
    model = RobustClassifier(m=m, modes=modes, t=t, hidden=(25,), epochs=EPOCHS, random_state=0)
    bound = model.certify(data.x, data.y, risk=risk, of=of)
    return bound, time.perf_counter() - begin


def on_test_rows(predictor, x, y, loss: Callable, members: int) -> float:
    """The mean over draws of so many members."""
    fitted = predictor.fitted_
    rows = fitted.units.features.apply(x), y.astype(np.int32)
    model, state = fitted.learner.model, fitted.state
    values = mean_losses(model, loss, state, *rows, members=members, key=jax.random.key(99))
    return float(values.mean())


def loss_line(data: Data, eps: float, m: int, t: float) -> Loss:
    bound, seconds = certified(data, m, t, "log_t", "members")
    test = on_test_rows(bound.predictor, data.x_test, data.y_test, log_t_loss(t), m)
    return Loss(
        eps,
        m,
        t,
        bound.value,
        *(
            bound.terms[name]
            for name in ("empirical risk", "Monte Carlo error", "for confidence", "for complexity")
        ),
        bound.terms["KL of a member (nats)"],
        test,
        bound.value / test,
        -float(log_t(1 / CLASSES, t)),
        seconds,
    )


def error_line(data: Data, eps: float, t: float, of: str) -> Error:
    bound, seconds = certified(data, M, t, "error", of)
    if of in ("predictor", "ensemble"):  # a hundred members stand for the whole ensemble
        predicted = bound.predictor.predict(data.x_test)
        test, clean = (float(np.mean(predicted != y)) for y in (data.y_test, data.clean_test))
    else:
        members = M if of == "members" else 1
        test, clean = (
            on_test_rows(bound.predictor, data.x_test, y, wrong, members)
            for y in (data.y_test, data.clean_test)
        )
    names = ("empirical risk", "Monte Carlo error", "for confidence", "for settings tried")
    return Error(
        eps,
        t,
        of,
        bound.value,
        *(bound.terms[name] for name in names),
        bound.terms["for complexity"],
        bound.terms.get("for members not drawn", 0.0),
        bound.terms["KL of a member (nats)"],
        test,
        uniform_flips(bound, eps, CLASSES).value,
        clean,
        seconds,
    )


def of_modes(data: Data, clean: Data, modes: int) -> None:
    """Modes of their own: the log_t loss on dirty rows, the error rate on clean ones."""
    bound, _ = certified(data, 1, T, "log_t", "predictor", modes)
    said = bound.predictor.predict_proba(data.x_test)[np.arange(len(data.y_test)), data.y_test]
    test = -float(np.mean(log_t(said, T)))
    console.print(
        f"{modes} modes, log_t at t={T:g}, ε={EPSILON:g}: certified {bound.value:.4f}, test "
        f"{test:.4f}, {bound.value / test:.3f} times (aim 1.15)."
    )
    bound, _ = certified(clean, 1, T, "error", "predictor", modes)
    test = float(np.mean(bound.predictor.predict(clean.x_test) != clean.clean_test))
    console.print(
        f"{modes} modes, error rate on clean MNIST: certified {bound.value:.2%}, test {test:.2%} "
        "(aim 4.5 %)."
    )


def write_csv(path: Path, rows: list) -> None:
    with atomic(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0]._fields)
        writer.writerows(rows)


def show(title: str, rows: list, digits: int) -> None:
    table = Table(title=title, title_justify="left")
    for name in rows[0]._fields:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(f"{v:.{digits}g}" if isinstance(v, float) else str(v) for v in row))
    console.print(table)


def aims(losses: Iterable[Loss], errors: Iterable[Error]) -> None:
    """What was aimed at, beside what came out."""
    for row in losses:
        if (row.m, row.t, row.eps) == (M, T, EPSILON):
            console.print(
                f"log_t at m={M}, t={T:g}, ε={EPSILON:g}: {row.ratio:.3f} times the test value "
                f"(aim 1.1), {row.bound / row.uniform:.2f} times that of a uniform prediction."
            )
    for row in errors:
        if (row.eps, row.of) == (0.0, "predictor"):
            console.print(f"Error rate on clean MNIST: certified {row.bound:.2%} (aim 8 %).")


def main(
    quick: Annotated[bool, typer.Option(help="6,000 rows, a few lines.")] = False,
    modes: Annotated[int, typer.Option(help="That many modes of their own, two lines.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path(
        "results/certificates"
    ),
) -> None:
    rows = 6000 if quick else 60_000
    if modes > 1:
        of_modes(load(EPSILON, rows), load(0.0, rows), modes)
        return
    members, orders = ((M,), (T,)) if quick else (MEMBERS, ORDERS)
    cells = [(m, t) for m in members for t in orders]
    shares = (0.0, EPSILON)
    losses: list[Loss] = []
    errors: list[Error] = []
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("", total=len(cells) + len(shares) * len(OF))
        data = load(EPSILON, rows)
        for m, t in cells:
            progress.update(bar, description=f"log_t, m={m}, t={t:g}")
            losses.append(loss_line(data, EPSILON, m, t))
            write_csv(out / "log_t.csv", losses)
            progress.advance(bar)
        for eps in shares:
            data = load(eps, rows)
            for of in OF:
                progress.update(bar, description=f"error, ε={eps:g}, {of}")
                errors.append(error_line(data, eps, T, of))
                write_csv(out / "error.csv", errors)
                progress.advance(bar)
    show("log_t loss of m members", losses, 3)
    show(f"Error rates, m={M}", errors, 3)
    aims(losses, errors)


if __name__ == "__main__":
    typer.run(main)
