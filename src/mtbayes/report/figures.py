"""The house style, and saving a figure as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from mtbayes import _files

STYLE: Any = {
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.7,
    "svg.hashsalt": "mtbayes",
}

OUTLIER = "#c1121f"
TRUTH = "#2a9d3a"


def blank(width: float, height: float) -> Figure:
    """An empty figure in the house style; it belongs to no window and no global state."""
    with mpl.rc_context(STYLE):
        return Figure(figsize=(width, height), layout="constrained")


def ramp(values: Sequence[float]) -> dict[float, Any]:
    """A colour for each value, from dark (the first) to light, legible on white."""
    colours = mpl.colormaps["plasma"]
    last = max(len(values) - 1, 1)
    return {v: colours(0.85 * i / last) for i, v in enumerate(values)}


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name.png` and `name.svg`, each whole or not at all."""
    paths = []
    for ending in ("png", "svg"):
        path = folder / f"{name}.{ending}"
        with _files.atomic(path) as temporary, mpl.rc_context(STYLE):
            metadata = {"Date": None} if ending == "svg" else {"Software": None}
            figure.savefig(temporary, format=ending, dpi=160, metadata=metadata)
        paths.append(path)
    return paths
