"""What came out of the robustness benchmark: rows in a file, aims, tables, a plot."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from rich.table import Table

from mtbayes._files import atomic

mpl.use("Agg")
import matplotlib.pyplot as plt

AUTO, ORACLE, PLAIN = "ours, auto", "ours, oracle t", "ours, t=1"
FIXED, FIXED_QUICK = (1.0, 0.9, 0.7, 0.5, 0.3), (1.0, 0.7, 0.3)
_INTRODUCTION = """\
# Wrong labels and targets, beside rivals

Written by `benchmarks/robustness.py`; `--redraw` writes it again from the numbers beside it. A
share ε of the training rows is wrong, test rows are clean. Ours are the estimators as they come,
but for t where it is fixed. The oracle t is the fixed t with the lowest loss on the clean test
rows, which nobody knows in practice; with few test rows it wins by chance, too. What is known of
the misses is told in [how to choose](../how-to-choose.md). Images are measured
[beside a deep ensemble](../modes.md#the-defaults-on-images-and-housing).

![NLL on clean test rows against the share of wrong rows](robustness.png)

## Aims

Two numbers in a cell are the value and what it is held against.
"""


class Row(NamedTuple):
    """A line of the result."""

    dataset: str
    eps: float
    seed: int
    method: str
    metric: str
    value: float


def mean(rows: Iterable[Row], dataset: str, eps: float, method: str, metric: str) -> float:
    """Over seeds; NaN where it was not measured."""
    key = (dataset, eps, method, metric)
    values = [r.value for r in rows if (r.dataset, r.eps, r.method, r.metric) == key]
    return float(np.mean(values)) if values else math.nan


def table_of(rows: list[Row], dataset: str, eps: float) -> Table:
    here = [r for r in rows if (r.dataset, r.eps) == (dataset, eps)]
    metrics = list(dict.fromkeys(r.metric for r in here))
    metrics.sort(key=lambda metric: metric == "seconds")
    table = Table(title=f"{dataset}, ε = {eps:g}", title_justify="left")
    table.add_column("method", no_wrap=True)
    for metric in metrics:
        table.add_column(metric, justify="right", no_wrap=True)
    for method in dict.fromkeys(r.method for r in here):
        values = (mean(here, dataset, eps, method, metric) for metric in metrics)
        table.add_row(method, *("" if math.isnan(v) else f"{v:.4g}" for v in values))
    return table


class Verdict(NamedTuple):
    """One aim at one place; eps is NaN where it is for all shares of wrong rows."""

    aim: str
    dataset: str
    eps: float
    shown: str
    value: float
    met: bool


def verdicts(rows: list[Row]) -> list[Verdict]:
    found = []
    for name in dict.fromkeys(r.dataset for r in rows):
        here = [r for r in rows if r.dataset == name]
        for eps in sorted({r.eps for r in here}):
            found += [v for v in judged(here, name, eps) if not math.isnan(v.value)]
        found.append(speed(here, name))
    return found


def judged(rows: list[Row], name: str, eps: float) -> list[Verdict]:
    def of(method: str, metric: str) -> float:
        return mean(rows, name, eps, method, metric)

    def verdict(aim: str, value: float, met: bool, shown: str) -> Verdict:
        return Verdict(aim, name, eps, shown, value, bool(met))

    nll, oracle, plain = (of(method, "nll") for method in (AUTO, ORACLE, PLAIN))
    over, share = nll - oracle, (nll - oracle) / abs(oracle)
    gain = 100 * (of(AUTO, "accuracy") - of("deep ensemble", "accuracy"))
    ece, off = of(AUTO, "ece"), abs(of(AUTO, "contamination") - eps)
    auroc, theirs = of(AUTO, "auroc"), of("cleanlab", "auroc")
    coverage = of(AUTO, "coverage")
    found = [
        verdict(
            "NLL over the oracle's: 2 % or 0.01",
            over,
            share <= 0.02 or over <= 0.01,
            f"{share:+.1%} {over:+.3f}",
        ),
        verdict("accuracy less the ensemble's: 0", gain, gain >= 0, f"{gain:+.2f}"),
        verdict("ECE: 3 % (honest: floor)", ece, ece <= 3, f"{ece:.2f} ({of(AUTO, 'floor'):.2f})"),
        verdict("contamination off by: 0.03", off, off <= 0.03, f"{off:.3f}"),
        verdict(
            "AUROC less cleanlab's: 0", auroc - theirs, auroc >= theirs, f"{auroc:.3f} {theirs:.3f}"
        ),
        verdict("90 % interval: 88-93 %", coverage, 0.88 <= coverage <= 0.93, f"{coverage:.1%}"),
    ]
    if eps == 0:
        loss = 100 * (of(PLAIN, "accuracy") - of(AUTO, "accuracy"))
        worse = (nll - plain) / abs(plain)
        found += [
            verdict("accuracy lost to t=1: 0.2 points", loss, loss <= 0.2, f"{loss:+.2f}"),
            verdict(
                "NLL lost to t=1: 1 %", worse, worse <= 0.01, f"{worse:+.1%} {nll - plain:+.3f}"
            ),
        ]
    return found


def speed(rows: list[Row], name: str) -> Verdict:
    """The least time of each, in seconds: the first fits of a size are compiled."""

    def lowest(*methods: str) -> float:
        return min(r.value for r in rows if r.method in methods and r.metric == "seconds")

    ratio = lowest(AUTO) / lowest(*(f"ours, t={t:g}" for t in FIXED))
    aim = "time of t='auto' / time of a fixed t, at most 3"
    return Verdict(aim, name, math.nan, f"{ratio:.2f}", ratio, ratio <= 3)


def aims_table(found: list[Verdict]) -> Table:
    """A line for each aim and data set, a column for each share of wrong rows."""
    shares = sorted({v.eps for v in found if not math.isnan(v.eps)})
    table = Table(title="Aims of ours, auto", title_justify="left")
    table.add_column("aim", no_wrap=True)
    table.add_column("data set", no_wrap=True)
    for heading in (*(f"ε={eps:g}" for eps in shares), "all"):
        table.add_column(heading, justify="right", no_wrap=True)
    for aim, dataset in sorted({(v.aim, v.dataset) for v in found}):
        here = {v.eps: v for v in found if (v.aim, v.dataset) == (aim, dataset)}
        whole = [v for v in here.values() if math.isnan(v.eps)]
        cells = [*(here.get(eps) for eps in shares), *(whole or [None])]
        table.add_row(aim, dataset, *(cell(v) for v in cells))
    return table


def cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    return f"{verdict.shown} " + ("[green]pass[/]" if verdict.met else "[bold red]miss[/]")


def markdown(rows: list[Row], found: list[Verdict]) -> str:
    """The aims, and the loss of every method with its spread over seeds, as tables for a page."""
    names = list(dict.fromkeys(r.dataset for r in rows))
    shares = sorted({r.eps for r in rows})
    heads = [f"ε={eps:g}" for eps in shares]
    lines = [_INTRODUCTION, *_table_lines(["aim", "data set", *heads, "all"])]
    for aim, dataset in sorted({(v.aim, v.dataset) for v in found}):
        here = {v.eps: v for v in found if (v.aim, v.dataset) == (aim, dataset)}
        whole = next((v for v in here.values() if math.isnan(v.eps)), None)
        cells = [_marked(here.get(eps)) for eps in shares]
        lines.append("| " + " | ".join([aim, dataset, *cells, _marked(whole)]) + " |")
    met = sum(v.met for v in found)
    lines += ["", f"{met} of {len(found)} aims are met; those that are not are in bold.", ""]
    for name in names:
        here = [r for r in rows if r.dataset == name]
        seeds = len({r.seed for r in here})
        over = "one seed" if seeds == 1 else f"mean and range over {seeds} seeds"
        lines += [f"## {name}", "", f"NLL on clean test rows, {over}.", ""]
        lines += _table_lines(["method", *heads])
        for method in (m for m in STYLES if any(r.method == m for r in here)):
            cells = [_spread(here, eps, method) for eps in shares]
            lines.append("| " + " | ".join([method, *cells]) + " |")
        lines.append("")
    return "\n".join(lines)


def _table_lines(heads: list[str]) -> list[str]:
    return ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]


def _marked(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    return verdict.shown if verdict.met else f"**{verdict.shown}**"


def _spread(rows: list[Row], eps: float, method: str) -> str:
    values = [r.value for r in rows if (r.eps, r.method, r.metric) == (eps, method, "nll")]
    if not values:
        return ""
    one = f"{np.mean(values):.3f}"
    return one if len(values) == 1 else f"{one} ({min(values):.3f}-{max(values):.3f})"


def read_rows(out: Path) -> list[Row]:
    """Rows of earlier runs; none where there is no file."""
    path = out / "robustness.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Row(r["dataset"], float(r["eps"]), int(r["seed"]), r["method"], r["metric"],
                float(r["value"]))
            for r in csv.DictReader(file)
        ]  # fmt: skip


def write_csv(path: Path, columns: Iterable[str], rows: Iterable[tuple]) -> None:
    with atomic(path) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def draw(path: Path, rows: list[Row]) -> None:
    """NLL against ε, a panel for each data set; methods far above the others leave the panel."""
    names = list(dict.fromkeys(r.dataset for r in rows))
    across = min(len(names), 3)
    down = -(-len(names) // across)
    figure, axes = plt.subplots(
        down,
        across,
        figsize=(max(4.5 * across, 7), 3.6 * down + 1.2),
        squeeze=False,
        layout="constrained",
    )
    handles: dict[str, object] = {}
    for ax, name in zip(axes.flat, names, strict=False):
        handles |= draw_panel(ax, name, [r for r in rows if r.dataset == name])
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    with atomic(path) as temporary:
        figure.savefig(temporary, dpi=110)
    plt.close(figure)


STYLES = {
    AUTO: {"color": "black", "linewidth": 2.5, "zorder": 4},
    ORACLE: {"color": "black", "linestyle": ":", "linewidth": 2, "zorder": 5},
    PLAIN: {"color": "grey", "linestyle": "--"},
    "Bayes": {"color": "C0"},
    "robust Gibbs": {"color": "C1"},
    "deep ensemble": {"color": "C2"},
    "GCE ensemble": {"color": "C3"},
    "cleanlab": {"color": "C4"},
    "sklearn MLP": {"color": "C5"},
    "logistic regression": {"color": "C6"},
    "ridge": {"color": "C6", "linestyle": "--"},
    "Huber": {"color": "C4", "linestyle": "--"},
    "random forest": {"color": "C8"},
    "gradient boosting": {"color": "C9"},
}


def draw_panel(ax, name: str, rows: list[Row]) -> dict[str, object]:
    shares = sorted({r.eps for r in rows})
    present = {r.method for r in rows}
    lines = {}
    for method, style in STYLES.items():
        if method in present:
            values = [mean(rows, name, eps, method, "nll") for eps in shares]
            (lines[method],) = ax.plot(shares, values, marker="o", markersize=3, **style)
    heights = np.concatenate([line.get_ydata() for line in lines.values()])
    best = heights[np.isfinite(heights)].min()
    typical = float(np.nanmedian(heights)) - best
    ax.set(xlabel="share ε of wrong rows", ylabel="NLL, clean test rows", title=name)
    ax.set_ylim(best - 0.2 * typical, min(float(np.nanmax(heights)) * 1.02, best + 4 * typical))
    return lines
