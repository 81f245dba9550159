"""The commands: each parses, calls, prints."""

from __future__ import annotations

from typing import Any

from mtbayes.commands.apply import apply
from mtbayes.commands.audit import audit
from mtbayes.commands.cache import cache
from mtbayes.commands.certify import certify
from mtbayes.commands.compare import compare
from mtbayes.commands.consensus import consensus
from mtbayes.commands.explore import explore
from mtbayes.commands.fit import fit
from mtbayes.commands.predict import predict
from mtbayes.commands.report import report
from mtbayes.commands.reproduce import demo, reproduce
from mtbayes.commands.review import review


def register(app: Any) -> None:
    """Put the commands into the command `mtbayes`."""
    data = (fit, predict, audit, consensus, review, apply, certify, compare, report)
    for command in (*data, explore, reproduce, demo, cache):
        app.command()(command)
