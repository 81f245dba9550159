"""The page in which a reader drags points: pieces that a browser runs, put into one file.

`quadrature.js`, `descent.js` and `toy.js` are ports of `maths.expectation`, of `solve.on_grid` with
`posteriors.grid`, and of `experiments.toy` with `theory.sensitivity`; `logistic.js` is
`maths.majorise` around a logistic regression. A test holds the ports to what they are ports of.
"""

from __future__ import annotations

from importlib.resources import files

SCRIPTS = (
    "quadrature.js",
    "descent.js",
    "toy.js",
    "plot.js",
    "line.js",
    "hands.js",
    "logistic.js",
    "plane.js",
    "plane_hands.js",
)
"""In the order in which a browser must read them: each uses names of those before."""


def page() -> str:
    """The whole page as HTML that loads nothing.

    >>> text = page()
    >>> "{{" in text, "src=" in text
    (False, False)
    """
    here = files(__name__)
    script = "\n".join((here / name).read_text("utf-8") for name in SCRIPTS)
    text = (here / "page.html").read_text("utf-8")
    style = (here / "style.css").read_text("utf-8")
    return text.replace("{{style}}", style.rstrip()).replace("{{script}}", script.rstrip())
