"""The paper's experiments: frozen specs, numbers written to files, no pictures.

Each experiment is a module with `run(out, tell)`: it writes its numbers below `out / NAME` and
reports progress through `tell(share_done, what)`.
"""

from mtbayes.experiments import influence, tlog, toy
from mtbayes.experiments.tidy import COLUMNS, Row, Tell

EXPERIMENTS = {"toy": toy, "tlog": tlog, "influence": influence}
"""Every experiment by its name on the command line."""

__all__ = ["COLUMNS", "EXPERIMENTS", "Row", "Tell"]
