"""A page of images that are most likely in the wrong class, with a thumbnail of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mtbayes.data.photos import thumbnail
from mtbayes.report import html


def page(title: str, about: list[str], suspects: list[dict[str, Any]]) -> str:
    """One HTML file that needs nothing else; suspects have a path each."""
    heads = ["rank", "image", "file", "wrong %", "given", "suggested", "why"]
    lines: list[list[Any]] = [
        [
            str(one["rank"]),
            html.Picture(thumbnail(Path(one["path"])), f"Given as {one['given']}"),
            str(one["path"]),
            f"{100 * one['probability']:.1f}",
            str(one["given"]),
            str(one["suggested"]),
            one["why"],
        ]
        for one in suspects
    ]
    words = ["file", "given", "suggested", "why"]
    return html.document(
        title,
        html.escape(title),
        html.bullets(about),
        html.section(
            "Images to look at", html.table("The most suspicious images", heads, lines, text=words)
        ),
    )
