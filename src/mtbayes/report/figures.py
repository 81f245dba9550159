"""The house style, and saving a figure as PNG and SVG."""

from __future__ import annotations

import io
import re
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

# Figures inside a page: their colours are the page's own, which knows light and dark.
INK, QUIET, GRID = "#1f2328", "#59616a", "#e6e6e5"
BLUE, PALE = "#1d5fa8", "#5f97d0"
SCHEME = {
    INK: "--ink",
    QUIET: "--quiet",
    GRID: "--grid",
    BLUE: "--blue",
    PALE: "--pale",
    OUTLIER: "--bad",
}
_COLOURED = (
    "text.color axes.edgecolor axes.labelcolor axes.titlecolor xtick.color ytick.color "
    "xtick.labelcolor ytick.labelcolor"
)
IN_PAGE: Any = (
    STYLE
    | dict.fromkeys(_COLOURED.split(), INK)
    | {
        "font.size": 11.0,
        "axes.titlesize": 11.5,
        "grid.color": GRID,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "svg.fonttype": "none",
        "text.parse_math": False,  # a column's name may hold dollars
    }
)


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


def inline(figure: Figure, name: str) -> str:
    """The figure as SVG to stand in a page, in the page's font and colours.

    name: other than that of any other figure of the page; what refers to parts goes by it
    """
    file = io.StringIO()
    with mpl.rc_context(IN_PAGE | {"svg.hashsalt": name}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace("\n", " ")
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", svg)
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r" font-family: [^;]*;", "", svg)
    used = set(re.findall(r"#(\w+)", " ".join(re.findall(r'(?:url\(|href=")#\w+', svg))))
    svg = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", svg)
    for colour, variable in SCHEME.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg.strip()


def png(image: Any, low: float, high: float) -> bytes:
    """A grey picture [h, w], a pixel each; `high` is white."""
    file = io.BytesIO()
    mpl.image.imsave(file, image, vmin=low, vmax=high, cmap="gray", format="png")
    return file.getvalue()
