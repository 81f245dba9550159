"""Table and figure of the demo, from its saved numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from mtbayes.experiments.demo import BINS, NAMES, OURS, SIDE, stopped_after
from mtbayes.experiments.results import read_columns, read_rows
from mtbayes.report import figures
from mtbayes.types import FloatArray

_ACROSS = 10  # digits in a line
_FEW = 10  # rows: a bin with fewer is pale
_BAR, _STRIP = "#4aa3df", "#8a8a8a"


def draw(out: Path) -> list[Path]:
    """Draw the reliability diagrams above the most suspicious digits."""
    folder = out / "demo"
    measured = _measured(folder)
    diagrams = read_columns(folder / "reliability.csv")
    suspects = read_columns(folder / "suspects.csv")
    with mpl.rc_context(figures.STYLE):
        figure = figures.blank(10.5, 7.4)
        halves: Any = figure.subfigures(2, 1, height_ratios=(1.15, 1), hspace=0.04)
        _reliability(halves[0], diagrams, measured)
        _digits(halves[1], suspects)
    return figures.save(figure, folder, "demo")


def tables(out: Path) -> list[Any]:
    """The four methods side by side, and what ours found out about the labels."""
    measured = _measured(out / "demo")
    ours = measured[OURS]
    table = Table(
        title=f"{ours['contamination_true']:.0%} of {ours['train_rows']:.0f} training labels wrong,"
        f"\njudged on {ours['test_rows']:.0f} clean digits",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 3, 0, 0),
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for header in ("accuracy", "ECE", "NLL"):
        table.add_column(header, justify="right", no_wrap=True)
    best = {
        "accuracy": max(values["accuracy"] for values in measured.values()),
        "ece": min(values["ece"] for values in measured.values()),
        "nll": min(values["nll"] for values in measured.values()),
    }
    for name in NAMES:
        values = measured[name]
        cells = (
            Text(shown, "bold" if values[metric] == best[metric] else "")
            for metric, shown in (
                ("accuracy", _percent(values["accuracy"])),
                ("ece", _percent(values["ece"])),
                ("nll", f"{values['nll']:.3f}"),
            )
        )
        table.add_row(name, *cells)
    return [table, _early(measured), _findings(ours)]


def _early(measured: dict[str, dict[str, float]]) -> Text:
    """Those that learn wrong labels by heart, had they been stopped before."""
    epochs = int(measured[OURS]["epochs"])
    stopped = (
        f"{name}: accuracy {_percent(v['accuracy_early'])}, ECE {_percent(v['ece_early'])}, "
        f"NLL {v['nll_early']:.3f}"
        for name, v in measured.items()
        if "accuracy_early" in v
    )
    return Text(
        f"All trained for {epochs} epochs. Stopped after {stopped_after(epochs)}:\n  "
        + "\n  ".join(stopped)
    )


def _findings(ours: dict[str, float]) -> Text:
    alarms = f"{ours['false_alarms']:.0f} false alarm{'' if ours['false_alarms'] == 1 else 's'}"
    return Text(
        f"Share of wrong labels: estimated {_percent(ours['contamination'])} "
        f"({_percent(ours['contamination_low'])} to {_percent(ours['contamination_high'])}), "
        f"in truth {_percent(ours['contamination_true'])}.\n"
        f"t of the learner with the largest share: {ours['t_chosen']:g} "
        "(1 believes all rows alike, less is more robust).\n"
        f"Found {ours['found']:.0f} of {ours['wrong']:.0f} wrong labels, {alarms}."
    )


def _measured(folder: Path) -> dict[str, dict[str, float]]:
    """Values by method and metric."""
    measured: dict[str, dict[str, float]] = {name: {} for name in NAMES}
    for row in read_rows(folder / "results.csv"):
        measured[row.method][row.metric] = row.value
    return measured


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _reliability(
    figure: Any, diagrams: dict[str, FloatArray], measured: dict[str, dict[str, float]]
) -> None:
    figure.suptitle("Is it right as often as it says?", fontweight="bold")
    panels = figure.subplots(
        2, len(NAMES), sharex=True, sharey="row", height_ratios=(4, 1), squeeze=False
    )
    centre, width = (np.arange(BINS) + 0.5) / BINS, 0.92 / BINS
    for name, axes, strip in zip(NAMES, *panels, strict=True):
        confidence, accuracy, count = (
            diagrams[f"{name} {part}"] for part in ("confidence", "accuracy", "counts")
        )
        axes.plot([0, 1], [0, 1], "--", color="black", lw=1, label="as it should be", zorder=4)
        for held, alpha in ((count >= _FEW, 1.0), (count < _FEW, 0.25)):
            axes.bar(
                centre[held],
                accuracy[held],
                width,
                color=_BAR,
                alpha=alpha,
                label="share that is right" if alpha == 1 else f"pale: fewer than {_FEW} rows",
            )
            axes.bar(
                centre[held],
                (confidence - accuracy)[held],
                width,
                bottom=accuracy[held],
                facecolor=(1, 1, 1, 0.5 * alpha),
                edgecolor=mpl.colors.to_rgba(figures.OUTLIER, alpha),
                hatch="/////",
                hatch_linewidth=0.6,
                linewidth=0.8,
                label="gap to its confidence" if alpha == 1 else None,
                zorder=3,
            )
        values = measured[name]
        axes.set_title(
            f"accuracy {_percent(values['accuracy'])}, ECE {_percent(values['ece'])}", fontsize=9
        )
        axes.annotate(
            name,
            (0.5, 1.0),
            (0, 19),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="center",
            fontsize=11,
            fontweight="bold",
        )
        axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy", xticks=(0, 0.5, 1))
        strip.bar(centre, count / count.sum(), width, color=_STRIP)
        strip.set(xlabel="confidence", ylabel="rows", ylim=(0, 1), yticks=(0, 1))
        strip.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
        axes.label_outer()
        strip.label_outer()
    handles = panels[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4)


def _digits(figure: Any, suspects: dict[str, FloatArray]) -> None:
    figure.suptitle(
        f"The {len(suspects['row'])} training labels that ours trusts least", fontweight="bold"
    )
    pixels = np.stack([suspects[f"pixel{i}"] for i in range(SIDE * SIDE)], axis=1)
    lines = -(-len(pixels) // _ACROSS)
    panels = figure.subplots(lines, _ACROSS, squeeze=False).ravel()
    for axes in panels:
        axes.set_axis_off()
    labels = (suspects[name].astype(int) for name in ("given", "suggested", "true"))
    for axes, image, given, suggested, true in zip(panels, pixels, *labels, strict=False):
        colour = figures.TRUTH if suggested == true else figures.OUTLIER
        axes.imshow(image.reshape(SIDE, SIDE), cmap="gray_r", vmin=0, vmax=16)
        axes.set_title(f"given {given},\nsuggested {suggested}", color=colour, fontsize=9)
    key = ((figures.TRUTH, "the suggestion is the true label"), (figures.OUTLIER, "it is not"))
    figure.legend(
        [mpl.patches.Patch(color=colour) for colour, _ in key],
        [says for _, says in key],
        loc="outside lower center",
        ncols=2,
    )
