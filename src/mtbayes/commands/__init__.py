"""The commands for a person with a file: each parses, calls, prints."""

from __future__ import annotations

from typing import Any

from mtbayes.commands.audit import audit
from mtbayes.commands.certify import certify
from mtbayes.commands.fit import fit
from mtbayes.commands.predict import predict


def register(app: Any) -> None:
    """Put the commands into the command `mtbayes`."""
    for command in (fit, predict, audit, certify):
        app.command()(command)
